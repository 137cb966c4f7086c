document.documentElement.dataset.plain = "0";
