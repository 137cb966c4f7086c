import { addHours, format } from "date-fns";
import { CartesianGrid, Legend, Line, LineChart, Tooltip, XAxis, YAxis } from "recharts";

const start = new Date(2026, 10, 30);
const readings = Array.from({ length: 24 }, (_, hour) => ({
  time: format(addHours(start, hour), "HH:mm"),
  temperature: 9 + 6 * Math.sin(((hour - 9) * Math.PI) / 12),
  wind: 12 + 5 * Math.cos(hour),
}));

export default function Report() {
  return (
    <main>
      <h1>Report</h1>
      <LineChart width={800} height={400} data={readings}>
        <CartesianGrid />
        <XAxis dataKey="time" />
        <YAxis />
        <Tooltip />
        <Legend />
        <Line dataKey="temperature" stroke="#c33" />
        <Line dataKey="wind" stroke="#36c" />
      </LineChart>
    </main>
  );
}
