export default function Page() { return <h1>/docs/guide/start</h1>; }
