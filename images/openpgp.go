package images

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"slipway.dev/slipway/inventory"
)

const (
	maxKeyBytes       = 1 << 20  // Debian's whole keyring of its archive has 60 KiB
	maxSignatureBytes = 64 << 10 // of a few keys that sign together
)

// signatureEndings are what publishers add to the name of a checksum list for its signature: Ubuntu, Debian, Arch and Kali, Flatcar.
var signatureEndings = []string{".gpg", ".sign", ".asc", ".sig"}

// ArmourKey returns OpenPGP public keys as text (RFC 9580 section 6.2), whether a file holds text or binary. Keys of
// more than 1 MiB are Invalid. It does not check the keys themselves; the import does.
func ArmourKey(raw []byte) (string, error) {
	if len(raw) > maxKeyBytes {
		return "", inventory.Errorf(inventory.Invalid, "the key has %d bytes; at most %d are read", len(raw), maxKeyBytes)
	}
	if bytes.Contains(raw, []byte("-----BEGIN PGP ")) { // text already, with all keys of the file
		return string(raw), nil
	}
	var text bytes.Buffer
	w, err := armor.Encode(&text, openpgp.PublicKeyType, nil)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(raw); err != nil {
		return "", err
	}
	err = w.Close() // writes the end
	return text.String(), err
}

// keysOf reads OpenPGP public keys.
func keysOf(text string) (openpgp.EntityList, error) {
	wrong := func(why string) error {
		return inventory.Errorf(inventory.Invalid, "the key of the signature is not accepted: %s", inventory.Clean(why, 160)).
			WithHint("give the publisher's public key, as gpg --export --armor writes it")
	}
	if len(text) > maxKeyBytes {
		return nil, wrong("it is too long")
	}
	if strings.Contains(text, "PRIVATE KEY BLOCK") {
		return nil, wrong("it is a private key")
	}
	keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
	if err != nil {
		return nil, wrong(err.Error())
	}
	if len(keys) == 0 {
		return nil, wrong("there is none in it")
	}
	return keys, nil
}

// clearSigned takes the signed text out of a document that carries its signature, as Fedora and Rocky publish their lists.
// The form is RFC 9580 section 7. Only block.Bytes is signed: text before and after the block in the same file is
// not, and a list must not be read from it.
func clearSigned(text []byte) (signed []byte, sig io.Reader, ok bool) {
	block, _ := clearsign.Decode(text)
	if block == nil {
		return nil, nil, false
	}
	return block.Bytes, block.ArmoredSignature.Body, true
}

// dearmoured returns a signature in binary.
func dearmoured(sig []byte) io.Reader {
	if block, err := armor.Decode(bytes.NewReader(sig)); err == nil && block.Type == openpgp.SignatureType {
		return block.Body
	}
	return bytes.NewReader(sig)
}

// checkSignature reports who has signed, which must be one of keys.
func checkSignature(keys openpgp.EntityList, signed, sig io.Reader, now time.Time) (signer string, err error) {
	s, e, err := openpgp.VerifyDetachedSignature(keys, signed, sig, &packet.Config{Time: func() time.Time { return now }})
	switch {
	// RFC 9580 section 9.5 forbids these three for new signatures.
	case err == nil && slices.Contains([]crypto.Hash{crypto.MD5, crypto.SHA1, crypto.RIPEMD160}, s.Hash):
		return "", inventory.Errorf(inventory.Invalid, "the signature is made with %s, which can be forged", s.Hash).
			WithHint("look for a newer signature of the publisher, or give the file's own sum with --sha256")
	case err == nil:
		return keyName(e), nil
	}
	why := "it is damaged, or of something else: " + err.Error()
	var wrong pgperrors.SignatureError
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		why = "it was made by another key than the one that was given"
	case errors.Is(err, pgperrors.ErrKeyExpired), errors.Is(err, pgperrors.ErrSignatureExpired), errors.Is(err, pgperrors.ErrKeyRevoked):
		why = err.Error()
		if e != nil {
			why += ": " + keyName(e)
		}
	case errors.As(err, &wrong):
		why = "what was signed is not what is here: " + err.Error()
	}
	return "", inventory.Errorf(inventory.Invalid, "the signature is not good: %s", inventory.Clean(why, 200)).
		WithHint("nothing was imported; compare the key with the publisher's own page, then import again")
}

// keyName names a key for people.
func keyName(e *openpgp.Entity) string {
	fingerprint := fmt.Sprintf("%X", e.PrimaryKey.Fingerprint)
	if id := e.PrimaryIdentity(); id != nil {
		return inventory.Clean(id.Name, 100) + " (" + fingerprint + ")"
	}
	return fingerprint
}

// signedList checks the signature of a checksum list, where the request has a key, and returns what was signed.
func (c *Cache) signedList(ctx context.Context, p *plan, text []byte, t *tracker) ([]byte, error) {
	if p.key == nil { // without a key the sums count as they are: TLS is the only proof
		return text, nil
	}
	signed, sig, isInline := clearSigned(text)
	if !isInline || p.signature != "" { // a signature that the request names wins over one inside
		found, err := c.signatureOf(ctx, p.sums, p.signature, t)
		if err != nil {
			return nil, err
		}
		signed, sig = text, found
	}
	signer, err := checkSignature(p.key, bytes.NewReader(signed), sig, c.cfg.Now())
	if err != nil {
		return nil, explain(err, "checksum list: ")
	}
	t.note("the checksum list is signed by %s", signer)
	return signed, nil
}

// signatureOf fetches the signature that a request names, or one of those that publishers put next to a file.
func (c *Cache) signatureOf(ctx context.Context, of, at string, t *tracker) (io.Reader, error) {
	tries := []string{at}
	if at == "" {
		tries = nil
		for _, ending := range signatureEndings {
			tries = append(tries, of+ending)
		}
	}
	for _, where := range tries {
		sig, err := c.fetchText(ctx, where, maxSignatureBytes, t.note)
		if isNotFound(err) { // the next ending
			continue
		}
		if err != nil {
			return nil, explain(err, "signature: ")
		}
		if len(bytes.TrimSpace(sig)) == 0 {
			return nil, inventory.Errorf(inventory.Invalid, "%s is empty: there is no signature in it", redactIfURL(where)).WithHint("name another with --signature WHERE")
		}
		return dearmoured(sig), nil
	}
	return nil, inventory.Errorf(inventory.NotFound, "there is no signature at %s", redactIfURL(tries[0])).
		WithHint("name it with --signature WHERE")
}

// checkFile checks the signature of the image's only file, where the request has a key and there is no list.
func (c *Cache) checkFile(ctx context.Context, p *plan, f planned, d inventory.Digest, t *tracker) error {
	if p.key == nil || p.sums != "" { // signedList has checked the list, and the list covers the file
		return nil
	}
	if f.sources[0].isHere && p.signature == "" {
		return inventory.Errorf(inventory.Invalid, "there is a key for the signature of %s, and no signature", f.name).WithHint("name it with --signature WHERE")
	}
	sig, err := c.signatureOf(ctx, f.sources[0].at, p.signature, t)
	if err != nil {
		return err
	}
	file, a, err := c.Open(d) // the stored bytes, which are those that machines will get
	if err != nil {
		return err
	}
	defer file.Close()
	t.step(StepCheck)
	t.at(0, a.SizeBytes, "")
	signer, err := checkSignature(p.key, &counted{ctx: ctx, r: file, copied: t.copied}, sig, c.cfg.Now())
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	if err != nil {
		return explain(err, f.name+": ")
	}
	t.note("%s is signed by %s", f.name, signer)
	return nil
}

// counted reads until the context ends, and counts the bytes.
type counted struct {
	ctx    context.Context
	r      io.Reader
	copied func(int64)
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.copied(int64(n))
	return n, err
}
