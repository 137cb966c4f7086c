import Link from "next/link";
import chapters from "../chapters.json";
import Search from "./search";

export default function Home() {
  return (
    <main>
      <h1>Handbook</h1>
      <p>The handbook says how the server is run and measured.</p>
      <Search titles={chapters.map(({ slug, title }) => ({ slug, title }))} />
      <ul>
        {chapters.map(({ slug, title }) => (
          <li key={slug}>
            <Link href={`/posts/${slug}`}>{title}</Link>
          </li>
        ))}
      </ul>
    </main>
  );
}
