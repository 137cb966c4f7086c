"""An ASGI application: content in both directions, events as they happen, WebSocket."""

import asyncio


async def content_of(receive):
    content = b""
    while True:
        message = await receive()
        content += message.get("body", b"")
        if not message.get("more_body"):
            return content


async def websocket(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        text = f"{scope['path']} {message.get('text') or len(message['bytes'])}"
        await send({"type": "websocket.send", "text": text})


async def events(send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    for n in range(3):
        await send({"type": "http.response.body", "body": f"data: {n}\n\n".encode(), "more_body": True})
        await asyncio.sleep(0.2)  # they come one by one
    await send({"type": "http.response.body"})


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await websocket(scope, receive, send)
    elif scope["type"] == "http" and scope["path"] == "/events":
        await events(send)
    elif scope["type"] == "http":
        content = await content_of(receive)
        client = f"{scope['client'][0]} {scope['scheme']} ".encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": client + content})
