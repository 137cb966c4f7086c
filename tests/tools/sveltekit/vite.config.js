import { sveltekit } from "@sveltejs/kit/vite";

export default { plugins: [sveltekit()], define: { RELEASE: JSON.stringify(process.env.PUBLIC_RELEASE) } };
