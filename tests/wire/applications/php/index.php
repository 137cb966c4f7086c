<?php
// Says what it is asked for: /, /redirect, /missing, /slow, /fails, /session.
$path = $_SERVER['PATH_INFO'] ?? parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
switch ($path) {
case '/redirect':
    header('Location: /form.php', true, 303);
    break;
case '/missing':
    http_response_code(404);
    echo "no such page\n";
    break;
case '/slow':
    for ($n = 0; $n < 3; $n++) {
        echo str_repeat("$n", 10000), "\n";
        flush();
        usleep(200000);
    }
    break;
case '/fails':
    error_log("it \x1b[1mfails");
    http_response_code(500);
    break;
case '/session':
    session_start();
    $_SESSION['count'] = ($_SESSION['count'] ?? 0) + 1;
    echo $_SESSION['count'];
    break;
default:
    header('Content-Type: text/plain; charset=utf-8');
    foreach (['SCRIPT_NAME', 'SCRIPT_FILENAME', 'PATH_INFO', 'QUERY_STRING', 'REQUEST_URI', 'PHP_SELF', 'HTTPS', 'REMOTE_ADDR'] as $name)
        echo "$name=", $_SERVER[$name] ?? '', "\n";
}
