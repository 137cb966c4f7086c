<?php
// A form, and a file with it.
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    echo htmlspecialchars($_POST['name']), "\n";
    if (isset($_FILES['file']))
        echo $_FILES['file']['size'], ' ', hash_file('sha256', $_FILES['file']['tmp_name']), "\n";
} else {
    echo '<!doctype html><form method=post enctype="multipart/form-data"><input name=name><input type=file name=file><button>send</button></form>';
}
