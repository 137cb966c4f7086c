export default function Page() { return <h1>/blog/first</h1>; }
