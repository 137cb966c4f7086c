import { useState } from "react";
import { format } from "date-fns";

export default function Home() {
  const [count, setCount] = useState(0);
  return (
    <main>
      <h1>Weather station</h1>
      <p>Today is {format(new Date(2026, 10, 30), "EEEE, d MMMM yyyy")}.</p>
      <p>The station measures temperature, wind and rain every minute.</p>
      <button onClick={() => setCount(count + 1)}>{count} readings checked</button>
    </main>
  );
}
