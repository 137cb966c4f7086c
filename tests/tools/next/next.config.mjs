export default { output: "export", env: { RELEASE: process.env.RELEASE } };
