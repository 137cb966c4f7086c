// An express application: a form, JSON, a file, events as they happen.
const path = require('path');
const express = require(path.join(process.argv[2], 'express'));
const app = express();

app.set('trust proxy', true); // over a unix socket nobody else comes
app.get('/', (request, response) => response.json({ip: request.ip, protocol: request.protocol, host: request.hostname, query: request.query}));
app.post('/json', express.json(), (request, response) => response.status(201).json(request.body));
app.post('/form', express.urlencoded({extended: false}), (request, response) => response.send(`hello ${request.body.name}`));
app.get('/file', (request, response) => response.sendFile(__filename));
app.get('/events', (request, response) => {
  let n = 0;
  response.set('Content-Type', 'text/event-stream');
  response.flushHeaders();
  const timer = setInterval(() => {
    response.write(`id: ${n}\ndata: ${n}\n\n`);
    if (++n < 3) return;
    clearInterval(timer);
    response.end();
  }, 200);
  request.on('close', () => clearInterval(timer));
});

const server = app.listen(process.argv[3], () => console.log('listening'));
