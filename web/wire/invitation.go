package wire

import (
	"net/netip"
	"time"
)

// Invitation lets a machine become an instance.
type Invitation struct {
	ID        string     `json:"id" doc:"No secret"`
	Name      string     `json:"name,omitempty" doc:"What the new instance must be called; absent: the new machine chooses"`
	By        string     `json:"by" doc:"Who made it"`
	MadeAt    time.Time  `json:"madeAt"`
	ExpiresAt time.Time  `json:"expiresAt"`
	State     string     `json:"state" enum:"open,used,expired,withdrawn,refused" doc:"refused: it has ended after too many wrong codes"`
	UsedAt    time.Time  `json:"usedAt,omitzero" doc:"When a machine was first handed secret.key and the password of the database"`
	UsedFrom  netip.Addr `json:"usedFrom,omitzero" doc:"The address of that machine"`
	UsedAs    string     `json:"usedAs,omitempty" doc:"The name of the instance that it becomes"`
}

// NewInvitation is an invitation with its code.
type NewInvitation struct {
	Invitation
	Code      string   `json:"code" doc:"Shown this once. Anybody with this code gets secret.key and the password of the database"`
	Addresses []string `json:"addresses" doc:"Where the new machine may ask, each with a port"`
	Command   string   `json:"command" doc:"For the new machine. It asks for the code, or reads it from standard input"`
}
