import chapters from "../../../chapters.json";

export function generateStaticParams() {
  return chapters.map(({ slug }) => ({ slug }));
}

export default async function Post({ params }) {
  const { slug } = await params;
  const { title, text } = chapters.find((chapter) => chapter.slug === slug);
  return (
    <main>
      <h1>{title}</h1>
      {text.split("\n\n").map((paragraph, number) => (
        <p key={number}>{paragraph}</p>
      ))}
    </main>
  );
}
