"""A mail server (`aiosmtpd`) that says on stdout where it listens. Each mail is a line of JSON in the file MAILS.

MODE is `plain`, `starttls` or `tls`, AUTH `user:password` or nothing. It answers by the recipient: `status-CODE@..` with that code, `stall@..`
never, `flood@..` with a line without an end; it does not answer `QUIT` after a mail to `loiter@..`. Unless `plain` it writes the certificate of
its authority to CERTIFICATE.
"""

import asyncio
import datetime
import ipaddress
import json
import os
import ssl
import sys
import tempfile

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def make(name, is_ca, key, issuer=None, issuer_key=None):
    now = datetime.datetime.now(datetime.timezone.utc)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .sign(issuer_key or key, hashes.SHA256())
    )


def certificate(path):
    """Makes an authority, whose certificate goes to `path`, and a certificate of this server's."""
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = make("authority of the stand-in", True, ca_key)
    own = make("mail stand-in", False, key, ca.subject, ca_key)
    with open(path, "wb") as file:
        file.write(ca.public_bytes(serialization.Encoding.PEM))
    pem = own.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pem + private)
        file.flush()
        context.load_cert_chain(file.name)
    return context


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        local = address.split("@")[0]
        if local == "stall":
            await asyncio.Event().wait()
        while local == "flood":
            server._writer.write(b"2" * 65536)
            await server._writer.drain()
        if local.startswith("status-"):
            return f"{local[7:]} not now, {address}"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_QUIT(self, server, session, envelope):
        if getattr(session, "loiters", False):
            await asyncio.Event().wait()
        return "221 Bye"

    async def handle_DATA(self, server, session, envelope):
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "text": envelope.content.decode(),
            "tls": server.transport.get_extra_info("sslcontext") is not None,
            "user": session.auth_data and session.auth_data.login.decode(),
        }
        session.loiters = any(address.startswith("loiter@") for address in envelope.rcpt_tos)
        with open(os.environ["MAILS"], "a") as file:
            file.write(json.dumps(mail) + "\n")
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    wanted = os.environ["AUTH"]
    is_right = isinstance(data, LoginPassword) and f"{data.login.decode()}:{data.password.decode()}" == wanted
    return AuthResult(success=is_right, handled=is_right, auth_data=data)


async def main():
    mode = os.environ["MODE"]
    context = None if mode == "plain" else certificate(os.environ["CERTIFICATE"])
    needs_auth = bool(os.environ.get("AUTH"))

    def connection():
        return SMTP(
            Handler(),
            hostname="localhost",
            tls_context=context if mode == "starttls" else None,
            require_starttls=mode == "starttls",
            authenticator=authenticate if needs_auth else None,
            auth_required=needs_auth,
            auth_require_tls=mode == "starttls",
        )

    server = await asyncio.get_running_loop().create_server(
        connection, "127.0.0.1", 0, ssl=context if mode == "tls" else None
    )
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"listening": f"smtp://127.0.0.1:{port}"}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(main())
