package delivery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// ReportKey proves that a report comes from a machine that was given its configuration: it may have another address
// by then than the one it booted with.
func (dl *Deliverer) ReportKey(s inventory.SessionID) string { return dl.keyOf("report", s) }

// isReportKey compares in constant time.
func (dl *Deliverer) isReportKey(s inventory.SessionID, key string) bool {
	return dl.isKey(key, dl.ReportKey(s))
}

// AgentKey proves that a question or a report comes from the agent of a boot: only the script that starts the agent has
// it. The id of a boot is in DHCP answers, which everybody on the network may hear.
func (dl *Deliverer) AgentKey(s inventory.SessionID) string { return dl.keyOf("agent", s) }

// DocumentKey proves that whoever fetches the documents of a boot of our agent was told to: only the task of the agent names
// it. It is another key than the agent's, because documents name each other and stay on the disk.
func (dl *Deliverer) DocumentKey(s inventory.SessionID) string { return dl.keyOf("documents", s) }

// ConfigURL is where a machine fetches a document of its boot.
func (dl *Deliverer) ConfigURL(base string, s *inventory.BootSession, name string) string {
	key := ""
	if s.Boot == string(pxe.BootAgent) {
		key = dl.DocumentKey(s.ID)
	}
	return pxe.ConfigURL(base, s.ID, key, name)
}

// IsAgentKey compares in constant time.
func (dl *Deliverer) IsAgentKey(s inventory.SessionID, key string) bool {
	return dl.isKey(key, dl.AgentKey(s))
}

// keyOf derives the key of a boot for one purpose from the secret of this server.
func (dl *Deliverer) keyOf(purpose string, s inventory.SessionID) string {
	m := hmac.New(sha256.New, dl.cfg.ReportKey)
	m.Write([]byte(purpose + " " + string(s)))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

func (dl *Deliverer) isKey(key, want string) bool {
	return key != "" && len(dl.cfg.ReportKey) > 0 && hmac.Equal([]byte(want), []byte(key))
}
