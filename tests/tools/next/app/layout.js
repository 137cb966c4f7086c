import Link from "next/link";
import Release from "./release";
import "./site.css";

const PAGES = ["/", "/about", "/blog", "/blog/first", "/docs/guide/start"];

export default function Layout({ children }) {
  return (
    <html lang="en" data-page={process.env.RELEASE}>
      <head>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/plain.css" />
        <script src="/plain.js" />
      </head>
      <body>
        <nav>{PAGES.map((page) => <Link key={page} href={page}>{page}</Link>)}</nav>
        {children}
        <Release />
      </body>
    </html>
  );
}
