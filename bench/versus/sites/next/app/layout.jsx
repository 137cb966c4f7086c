import Link from "next/link";
import "./style.css";

export const metadata = { title: "Handbook" };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>
        <nav>
          <Link href="/">Home</Link> <Link href="/about">About</Link>
        </nav>
        {children}
        <footer>Written by those who run it.</footer>
      </body>
    </html>
  );
}
