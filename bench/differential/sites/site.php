<?php
// What an application takes for a path that reads the address itself, or what PHP's server has made of it.
$said = parse_url($_SERVER["REQUEST_URI"], PHP_URL_PATH);
$paths = [rawurldecode($said ?: "/"), $_SERVER["SCRIPT_NAME"], $_SERVER["PHP_SELF"]];
$host = rtrim(strtolower(explode(":", $_SERVER["HTTP_HOST"] ?? "")[0]), ".");
$page = "open";
foreach ($paths as $path) {
    if ($host === "a.example" && ($path === "/tickets" || str_starts_with($path, "/tickets/"))) {
        $page = "tickets";
    }
}
$body = isset($_SERVER["HTTP_TRANSFER_ENCODING"]) ? "-" : bin2hex(file_get_contents("php://input"));
file_put_contents("php://stdout", "served\t$page\t$host\t" . ($_SERVER["HTTP_X_ID"] ?? "") . "\t$body\n");
