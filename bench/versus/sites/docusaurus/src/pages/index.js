import Link from "@docusaurus/Link";
import Layout from "@theme/Layout";

export default function Home() {
  return (
    <Layout title="Home">
      <main className="container margin-vert--lg">
        <h1>Handbook</h1>
        <p>How the server is run and measured.</p>
        <Link className="button button--primary" to="/docs/first">
          Read
        </Link>
      </main>
    </Layout>
  );
}
