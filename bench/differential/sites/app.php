<?php
// An application in PHP, and what it sees of each request.
$body = file_get_contents("php://input");
$fields = [];
foreach (getallheaders() as $name => $value) {
    $fields[] = [$name, $value];
}
$seen = ["method" => $_SERVER["REQUEST_METHOD"], "target" => $_SERVER["REQUEST_URI"], "fields" => $fields,
    "length" => strlen($body), "body" => hash("sha256", $body)];
$json = json_encode($seen, JSON_INVALID_UTF8_SUBSTITUTE);
file_put_contents("php://stdout", "served\t$json\t-\t" . ($_SERVER["HTTP_X_ID"] ?? "") . "\t-\n");

$path = parse_url($_SERVER["REQUEST_URI"], PHP_URL_PATH) ?: "/";
header("Content-Type: text/plain");
if (preg_match("#^/status/(\d+)$#", $path, $m)) {
    http_response_code((int) $m[1]);
    if ($m[1] === "401") header('WWW-Authenticate: Basic realm="a"');
    if ($m[1] === "429") header("Retry-After: 5");
    echo in_array($m[1], ["204", "304"]) ? "" : "this is $m[1]";
} elseif (preg_match("#^/to/(\d+)$#", $path, $m)) {
    header("Location: /elsewhere?a=b", true, (int) $m[1]);
} elseif ($path === "/many") {
    setcookie("a", "1", ["path" => "/"]);
    setcookie("b", "2", ["httponly" => true]);
    foreach (["1", "2", "3"] as $value) header("X-Many: $value", false);
    echo "many";
} elseif ($path === "/file") {
    header("Content-Length: " . filesize(__DIR__ . "/file.txt"));
    readfile(__DIR__ . "/file.txt");
} elseif ($path === "/large") {
    echo str_repeat("0123456789abcdef", 3 << 16);
} elseif ($path === "/parts") {
    for ($i = 0; $i < 20; $i++) { echo str_repeat("part $i\n", 100); flush(); }
} elseif ($path === "/events") {
    header("Content-Type: text/event-stream");
    echo "data: a\n\ndata: b\n\n";
} elseif ($path === "/gzip") {
    header("Vary: Accept-Encoding");
    $text = str_repeat("squeeze ", 1000);
    if (str_contains($_SERVER["HTTP_ACCEPT_ENCODING"] ?? "", "gzip")) { header("Content-Encoding: gzip"); $text = gzencode($text); }
    echo $text;
} elseif ($path === "/bytes") {
    header("X-Bytes: caf\xe9");
    header("X-Empty: ");
    echo "\0\xff\r\n\0";
} elseif ($path === "/raise") {
    throw new Exception("raised");
} else {
    echo "hello";
}
