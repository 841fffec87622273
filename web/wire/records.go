package wire

import (
	"time"

	"slipway.dev/slipway/inventory"
)

// Difference is one field that a write would change.
type Difference struct {
	Field string `json:"field" example:"place.rack"`
	From  any    `json:"from" doc:"null: there was none"`
	To    any    `json:"to" doc:"null: it goes"`
}

// TargetCheckResult is one checked thing of a cluster or a controller.
type TargetCheckResult struct {
	Name   string `json:"name"`
	IsGood bool   `json:"isGood"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// Pool is a pool with how its hosts are doing.
type Pool struct {
	inventory.Pool
	Hosts PoolHosts `json:"hosts" readOnly:"true"`
}

// PoolHosts counts the accepted hosts that a pool's selector matches. A host may be in several pools.
type PoolHosts struct {
	Total     int `json:"total"`
	Available int `json:"available" doc:"Could be claimed, as far as their state goes"`
	Claimed   int `json:"claimed"`
	Cleaning  int `json:"cleaning" doc:"Being released or wiped"`
	Failed    int `json:"failed"`
}

// KeptView is a view of the hosts with whether all share it.
type KeptView struct {
	inventory.View
	IsShared bool `json:"isShared" doc:"For others too, instead of for the user who stores it. A client without a user has shared views only."`
}

// AuditEntry is an entry of the audit with what it changed, field by field.
type AuditEntry struct {
	inventory.Audit
	Changes []Difference `json:"changes" doc:"What the edit changed"`
	// NotUndoable is about the entry itself; whether the thing has changed since shows in a dry run of the undo.
	NotUndoable string `json:"notUndoable,omitempty" doc:"Why it can never be undone"`
}

// SecondFactor is what a new authenticator app needs.
type SecondFactor struct {
	Secret string `json:"secret" doc:"For apps in which it is typed in"`
	URL    string `json:"url" doc:"What apps read from a QR code" example:"otpauth://totp/Slipway:anna?secret=..."`
	Ticket string `json:"ticket" doc:"Goes back with the first code"`
}

// SecondFactors says what a user has in addition to the password.
type SecondFactors struct {
	App           bool          `json:"app" doc:"An authenticator app is set up"`
	SecurityKeys  []SecurityKey `json:"securityKeys"`
	RecoveryCodes int           `json:"recoveryCodes" doc:"How many are left"`
}

// SecurityKey is a security key or passkey of a user (WebAuthn).
type SecurityKey struct {
	Name    string    `json:"name"`
	Site    string    `json:"site" doc:"The name under which Slipway was open when it was registered: it works there only"`
	AddedAt time.Time `json:"addedAt"`
	UsedAt  time.Time `json:"usedAt,omitzero"`
}

// Me is who sent the request, and what that one may do.
type Me struct {
	Name            string           `json:"name" doc:"user NAME, token NAME, or NAME (local) for the Unix socket"`
	User            string           `json:"user,omitempty" doc:"The user's name; absent for a token of nobody and for the socket"`
	DisplayName     string           `json:"displayName,omitempty"`
	HasPassword     bool             `json:"hasPassword,omitempty" doc:"The user logs in with a password here"`
	HasSecondFactor bool             `json:"hasSecondFactor,omitempty"`
	MustSetUp       bool             `json:"mustSetUpSecondFactor,omitempty" doc:"Before anything else"`
	Via             string           `json:"via" enum:"login,token,socket"`
	Login           string           `json:"login,omitempty" doc:"Id of this login"`
	Grants          inventory.Grants `json:"grants"`
	Cluster         string           `json:"cluster,omitempty" doc:"UID of the cluster whose controllers the token is for; it is good for nothing else"`
	Namespaces      []string         `json:"namespaces,omitempty" doc:"Those of the cluster that the token speaks for; absent means all"`
	NeedsSetup      bool             `json:"needsSetup" doc:"There is no user yet: make one"`
}

// RecoveryCodes are shown once.
type RecoveryCodes struct {
	Codes []string `json:"codes" doc:"Each lets the user in once, in place of a code of the app"`
}
