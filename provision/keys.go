package provision

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// reportKey proves that a report comes from a machine that was given its configuration: it may have another address
// by then than the one it booted with.
func (e *Engine) reportKey(s inventory.SessionID) string { return e.keyOf("report", s) }

// isReportKey compares in constant time.
func (e *Engine) isReportKey(s inventory.SessionID, key string) bool {
	return e.isKey(key, e.reportKey(s))
}

// agentKey proves that a question or a report comes from the agent of a boot: only the script that starts the agent has
// it. The id of a boot is in DHCP answers, which everybody on the network may hear.
func (e *Engine) agentKey(s inventory.SessionID) string { return e.keyOf("agent", s) }

// documentKey proves that whoever fetches the documents of a boot of our agent was told to: only the task of the agent names
// it. It is another key than the agent's, because documents name each other and stay on the disk.
func (e *Engine) documentKey(s inventory.SessionID) string { return e.keyOf("documents", s) }

// configURL is where a machine fetches a document of its boot.
func (e *Engine) configURL(base string, s *inventory.BootSession, name string) string {
	key := ""
	if s.Boot == string(pxe.BootAgent) {
		key = e.documentKey(s.ID)
	}
	return pxe.ConfigURL(base, s.ID, key, name)
}

// isAgentKey compares in constant time.
func (e *Engine) isAgentKey(s inventory.SessionID, key string) bool {
	return e.isKey(key, e.agentKey(s))
}

// keyOf derives the key of a boot for one purpose from the secret of this server.
func (e *Engine) keyOf(purpose string, s inventory.SessionID) string {
	m := hmac.New(sha256.New, e.cfg.ReportKey)
	m.Write([]byte(purpose + " " + string(s)))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

func (e *Engine) isKey(key, want string) bool {
	return key != "" && len(e.cfg.ReportKey) > 0 && hmac.Equal([]byte(want), []byte(key))
}
