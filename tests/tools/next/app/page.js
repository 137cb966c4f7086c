export default function Page() { return <h1>/</h1>; }
