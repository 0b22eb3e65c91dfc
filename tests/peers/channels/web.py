"""An HTTP server for stand-ins: says where it listens, answers what its handler says, and keeps what it got."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve(handle):
    """Serves until the process ends. `handle(method, path, headers, body)` returns (status, headers, body)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                status, more, reply = handle(self.command, self.path, headers, body)
            except Exception as error:  # a mistake of the sender's, told in full to the test
                status, more, reply = 500, {}, {"mistake": f"{type(error).__name__}: {error}"}
            if not isinstance(reply, bytes):
                reply = json.dumps(reply).encode()
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(json.dumps({"listening": f"http://127.0.0.1:{server.server_address[1]}"}), flush=True)
    watch = threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True)
    watch.start()
    server.serve_forever()
