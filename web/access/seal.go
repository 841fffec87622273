package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// seal makes values that only this server can make. Each purpose has its own.
type seal struct{ key []byte }

func newSeal(key []byte) *seal {
	if key == nil {
		// A key that nobody stores: after a restart the cookies of logins at a provider that had begun are worth nothing.
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
	}
	return &seal{key}
}

func (s *seal) mac(what string, text []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	// The purpose goes first, and the zero byte ends it: a value for one purpose is never good for another.
	m.Write([]byte(what + "\x00"))
	m.Write(text)
	return m.Sum(nil)
}

// sign makes a value for a cookie.
func (s *seal) sign(what string, v any) string {
	text, _ := json.Marshal(v) // of texts and times
	return base64.RawURLEncoding.EncodeToString(append(s.mac(what, text), text...))
}

// signed reads what sign has made for the same purpose.
func (s *seal) signed(what, value string, v any) bool {
	// The MAC is checked before the JSON is decoded, so that no foreign text reaches the decoder.
	raw, err := base64.RawURLEncoding.DecodeString(value)
	return err == nil && len(raw) > sha256.Size && hmac.Equal(raw[:sha256.Size], s.mac(what, raw[sha256.Size:])) && json.Unmarshal(raw[sha256.Size:], v) == nil
}
