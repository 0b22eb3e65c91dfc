//! Message encryption for web push: RFC 8291 over RFC 8188, in one record.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The record size in the header; every record fits into it.
const RECORD_SIZE: u32 = 4096;

/// The delimiter of the last record.
const LAST: u8 = 2;

/// Encrypts for a browser with a new key and a new salt. `None` if its public key is not a point of the curve.
pub(super) fn encrypt(plain: &[u8], browser: &[u8; 65], auth: &[u8; 16]) -> Option<Vec<u8>> {
    let random = SystemRandom::new();
    let private = EphemeralPrivateKey::generate(&ECDH_P256, &random).ok()?;
    let own = private.compute_public_key().ok()?;
    let own: [u8; 65] = own.as_ref().try_into().ok()?;
    let mut salt = [0; 16];
    random.fill(&mut salt).ok()?;
    let browser_key = UnparsedPublicKey::new(&ECDH_P256, browser);
    agree_ephemeral(private, &browser_key, |secret| {
        seal(plain, secret, browser, &own, auth, &salt)
    })
    .ok()
    .flatten()
}

/// Returns `true` for a public key that is a point of the curve.
pub(super) fn is_point(key: &[u8; 65]) -> bool {
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new());
    own.is_ok_and(|own| {
        let key = UnparsedPublicKey::new(&ECDH_P256, key);
        agree_ephemeral(own, &key, |_| ()).is_ok()
    })
}

/// Encrypts with an agreed secret.
fn seal(
    plain: &[u8],
    secret: &[u8],
    browser: &[u8; 65],
    own: &[u8; 65],
    auth: &[u8; 16],
    salt: &[u8; 16],
) -> Option<Vec<u8>> {
    let of_secret = Salt::new(HKDF_SHA256, auth).extract(secret);
    let input: [u8; 32] = expand(&of_secret, &[b"WebPush: info\0", browser, own])?;
    let of_salt = Salt::new(HKDF_SHA256, salt).extract(&input);
    let key: [u8; 16] = expand(&of_salt, &[b"Content-Encoding: aes128gcm\0"])?;
    let nonce: [u8; 12] = expand(&of_salt, &[b"Content-Encoding: nonce\0"])?;

    let mut record = Vec::with_capacity(plain.len() + 17);
    record.extend_from_slice(plain);
    record.push(LAST);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
    let nonce = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut record)
        .ok()?;

    let mut body = Vec::with_capacity(86 + record.len());
    body.extend_from_slice(salt);
    body.extend_from_slice(&RECORD_SIZE.to_be_bytes());
    body.push(65);
    body.extend_from_slice(own);
    body.extend_from_slice(&record);
    (record.len() <= RECORD_SIZE as usize).then_some(body)
}

/// A length of key material.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const N: usize>(from: &Prk, info: &[&[u8]]) -> Option<[u8; N]> {
    let mut out = [0; N];
    from.expand(info, Length(N)).ok()?.fill(&mut out).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn bytes<const N: usize>(text: &str) -> [u8; N] {
        URL_SAFE_NO_PAD.decode(text).unwrap().try_into().unwrap()
    }

    #[test]
    fn the_example_of_rfc_8291_comes_out() {
        // Appendix A, with its stated shared secret.
        let body = seal(
            b"When I grow up, I want to be a watermelon",
            &bytes::<32>("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs"),
            &bytes(
                "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            ),
            &bytes(
                "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
            ),
            &bytes("BTBZMqHH6r4Tts7J_aSIgg"),
            &bytes("DGv6ra1nlYgDCS1FRnbzlw"),
        );
        assert_eq!(
            URL_SAFE_NO_PAD.encode(body.unwrap()),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn keys_that_are_no_points_are_refused() {
        let mut key = [7; 65];
        key[0] = 4;
        assert!(encrypt(b"x", &key, &[0; 16]).is_none());
        assert!(!is_point(&key));
    }
}
