import Markdown from "react-markdown";
import chapters from "./chapters.json";

export default function Articles() {
  return (
    <main>
      <h1>Articles</h1>
      {chapters.map(({ title, text }) => (
        <article key={title}>
          <h2>{title}</h2>
          <Markdown>{text}</Markdown>
        </article>
      ))}
    </main>
  );
}
