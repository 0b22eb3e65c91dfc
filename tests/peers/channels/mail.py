"""A mail server (`aiosmtpd`) that says on stdout where it listens. Each mail is a line of JSON in the file MAILS.

MODE is `plain` or `starttls`, AUTH `user:password` or nothing. It answers by the recipient: `status-CODE@..` with that code, `stall@..`
never. With `starttls` it writes the certificate of its authority to CERTIFICATE.
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
        if local.startswith("status-"):
            return f"{local[7:]} not now, {address}"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "text": envelope.content.decode(),
            "tls": session.ssl is not None,
            "user": session.auth_data and session.auth_data.login.decode(),
        }
        with open(os.environ["MAILS"], "a") as file:
            file.write(json.dumps(mail) + "\n")
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    wanted = os.environ["AUTH"]
    is_right = isinstance(data, LoginPassword) and f"{data.login.decode()}:{data.password.decode()}" == wanted
    return AuthResult(success=is_right, handled=is_right, auth_data=data)


async def main():
    context = certificate(os.environ["CERTIFICATE"]) if os.environ["MODE"] == "starttls" else None
    needs_auth = bool(os.environ.get("AUTH"))

    def connection():
        return SMTP(
            Handler(),
            hostname="localhost",
            tls_context=context,
            require_starttls=context is not None,
            authenticator=authenticate if needs_auth else None,
            auth_required=needs_auth,
            auth_require_tls=context is not None,
        )

    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"listening": f"smtp://127.0.0.1:{port}"}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(main())
