package delivery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Keys derives the keys of boots from a secret of this server.
type Keys struct{ secret []byte }

// ReportKey proves that a report comes from a machine with its configuration. By then, the machine may have another address
// than the one it booted with.
func (k Keys) ReportKey(s inventory.SessionID) string { return k.keyOf("report", s) }

// isReportKey compares in constant time.
func (k Keys) isReportKey(s inventory.SessionID, key string) bool {
	return k.isKey(key, k.ReportKey(s))
}

// AgentKey proves that a question or a report comes from the agent of a boot: only the script that starts the agent has
// it. The id of a boot is in DHCP answers, which everybody on the network may hear.
func (k Keys) AgentKey(s inventory.SessionID) string { return k.keyOf("agent", s) }

// DocumentKey is the key with which our agent fetches the documents of its boot. Only the task of the agent has it. It
// differs from the agent's own key, because documents contain the URLs of others and stay on the disk.
func (k Keys) DocumentKey(s inventory.SessionID) string { return k.keyOf("documents", s) }

// isDocumentKey compares in constant time.
func (k Keys) isDocumentKey(s inventory.SessionID, key string) bool {
	return k.isKey(key, k.DocumentKey(s))
}

// ConfigURL is where a machine fetches a document of its boot.
func (k Keys) ConfigURL(base string, s *inventory.BootSession, name string) string {
	key := ""
	if s.Boot == string(pxe.BootAgent) {
		key = k.DocumentKey(s.ID)
	}
	return pxe.ConfigURL(base, s.ID, key, name)
}

// IsAgentKey compares in constant time.
func (k Keys) IsAgentKey(s inventory.SessionID, key string) bool {
	return k.isKey(key, k.AgentKey(s))
}

// keyOf derives the key of a boot for one purpose from the secret of this server.
func (k Keys) keyOf(purpose string, s inventory.SessionID) string {
	// The purpose is part of the input, so that one key cannot stand for another. 128 bits cannot be guessed.
	m := hmac.New(sha256.New, k.secret)
	m.Write([]byte(purpose + " " + string(s)))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

func (k Keys) isKey(key, want string) bool {
	// Without a secret every key would be the same for everybody, so that none is good.
	return key != "" && len(k.secret) > 0 && hmac.Equal([]byte(want), []byte(key))
}
