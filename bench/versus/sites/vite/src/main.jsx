import { lazy, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter, Link, Route, Routes } from "react-router-dom";
import Home from "./home.jsx";
import "./style.css";

const Report = lazy(() => import("./report.jsx"));
const Articles = lazy(() => import("./articles.jsx"));

createRoot(document.getElementById("root")).render(
  <BrowserRouter>
    <nav>
      <Link to="/">Home</Link> <Link to="/report">Report</Link> <Link to="/articles">Articles</Link>
    </nav>
    <Suspense fallback={<p>Loading</p>}>
      <Routes>
        <Route path="/" element={<Home />} />
        <Route path="/report" element={<Report />} />
        <Route path="/articles" element={<Articles />} />
      </Routes>
    </Suspense>
  </BrowserRouter>,
);
