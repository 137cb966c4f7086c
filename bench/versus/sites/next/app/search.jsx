"use client";

import { useState } from "react";
import Link from "next/link";

export default function Search({ titles }) {
  const [words, setWords] = useState("");
  const found = words ? titles.filter(({ title }) => title.toLowerCase().includes(words.toLowerCase())) : [];
  return (
    <div>
      <input placeholder="Search" value={words} onChange={(event) => setWords(event.target.value)} />
      {found.map(({ slug, title }) => (
        <Link key={slug} href={`/posts/${slug}`}>
          {title}
        </Link>
      ))}
    </div>
  );
}
