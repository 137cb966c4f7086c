export default function About() {
  return (
    <main>
      <h1>About</h1>
      <p>These pages are made from the texts of the project.</p>
    </main>
  );
}
