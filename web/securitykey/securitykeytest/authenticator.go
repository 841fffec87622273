// Package securitykeytest is a security key for tests: it answers the options of a site as a browser with a key does.
package securitykeytest

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Authenticator is one security key. Its fields may be changed between two answers.
type Authenticator struct {
	Origin string // that the browser is at
	Count  uint32 // of signatures
	id     []byte
	key    *ecdsa.PrivateKey
}

// New makes a key in a browser that is at an origin.
func New(origin string) *Authenticator {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	return &Authenticator{Origin: origin, id: id, key: key}
}

// options are those parts of what a site asks that a key needs.
type options struct {
	Challenge string              `json:"challenge"`
	RPID      string              `json:"rpId"`
	RP        struct{ ID string } `json:"rp"`
}

func read(raw []byte) (o options) {
	if err := json.Unmarshal(raw, &o); err != nil {
		panic(err)
	}
	o.RPID = cmp.Or(o.RPID, o.RP.ID)
	return o
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (a *Authenticator) clientData(kind, challenge string) []byte {
	text, _ := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.Origin, "crossOrigin": false}) // texts only
	return text
}

// flags of authenticator data: the user was there; a new credential follows.
const (
	userPresent = 0x01
	attested    = 0x40
)

func (a *Authenticator) data(site string, flags byte) []byte {
	sum := sha256.Sum256([]byte(site))
	return binary.BigEndian.AppendUint32(append(sum[:], flags), a.Count)
}

// Create answers navigator.credentials.create.
func (a *Authenticator) Create(raw []byte) string {
	o := read(raw)
	point, err := a.key.PublicKey.Bytes() // 0x04, x, y
	if err != nil {
		panic(err)
	}
	data := a.data(o.RPID, userPresent|attested)
	data = append(data, make([]byte, 16)...) // AAGUID: none
	data = binary.BigEndian.AppendUint16(data, uint16(len(a.id)))
	data = append(data, a.id...)
	// COSE: kty EC2, alg ES256, crv P-256, x, y
	data = append(data, 0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20)
	data = append(data, point[1:33]...)
	data = append(data, 0x22, 0x58, 0x20)
	data = append(data, point[33:]...)
	var object bytes.Buffer // {"fmt": "none", "attStmt": {}, "authData": data}
	object.WriteString("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58")
	object.WriteByte(byte(len(data)))
	object.Write(data)
	return fmt.Sprintf(`{"id":%q,"rawId":%q,"type":"public-key","response":{"clientDataJSON":%q,"attestationObject":%q}}`,
		b64(a.id), b64(a.id), b64(a.clientData("webauthn.create", o.Challenge)), b64(object.Bytes()))
}

// Get answers navigator.credentials.get.
func (a *Authenticator) Get(raw []byte) string {
	o := read(raw)
	a.Count++
	client, data := a.clientData("webauthn.get", o.Challenge), a.data(o.RPID, userPresent)
	hash := sha256.Sum256(client)
	digest := sha256.Sum256(append(bytes.Clone(data), hash[:]...))
	sig, err := ecdsa.SignASN1(rand.Reader, a.key, digest[:])
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"id":%q,"rawId":%q,"type":"public-key","response":{"clientDataJSON":%q,"authenticatorData":%q,"signature":%q}}`,
		b64(a.id), b64(a.id), b64(client), b64(data), b64(sig))
}
