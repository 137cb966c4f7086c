<?php
// Returns the content of the request.
header('Content-Type: application/octet-stream');
echo file_get_contents('php://input');
