"use client";
import { useEffect } from "react";

export default function Release() {
  useEffect(() => {
    document.documentElement.dataset.bundle = process.env.RELEASE;
  });
  return null;
}
