package inventory

import (
	"encoding/json"
	"time"
)

// AuditMax bounds what the audit keeps of a thing before and after a change, in bytes of JSON each. What is longer is
// left out, and such a change cannot be undone from here.
const AuditMax = 1 << 20

// Audit is one thing that somebody asked the API for: a change, an action, or one of these that was refused. It is
// written once and never changed or deleted.
type Audit struct {
	ID        int64       `json:"id" doc:"Counted from 1; it never repeats"`
	At        time.Time   `json:"at"`
	Actor     string      `json:"actor" doc:"Who asked: user NAME, token NAME, or USER (local)"`
	Role      string      `json:"role,omitempty" doc:"What the actor was then: viewer, operator or admin"`
	Via       string      `json:"via" doc:"How it came: login, token, socket, or none without credentials"`
	Source    string      `json:"source,omitempty" doc:"Address it came from; empty for the socket"`
	RequestID string      `json:"requestID,omitempty" doc:"Names the request in the server's log"`
	Operation string      `json:"operation" doc:"Id of the operation in the description of the API" example:"patch-host"`
	Noun      string      `json:"noun" doc:"What it was about, in the singular" example:"host"`
	Name      string      `json:"name,omitempty" doc:"Which of them, by the name it had then"`
	HostID    HostID      `json:"hostID,omitempty" doc:"The host that it concerned"`
	Change    AuditChange `json:"change,omitempty" doc:"What was done to the thing, where that was an edit"`
	Status    int         `json:"status" doc:"HTTP status of the answer; 400 and above was refused" example:"200"`
	Detail    string      `json:"detail,omitempty" doc:"The request, or the reason of its refusal"`
	// Before and After are left out of lists. Secrets are hidden in them as they are in the API's answers.
	Before json.RawMessage `json:"before,omitempty" doc:"The thing before; absent for what was created"`
	After  json.RawMessage `json:"after,omitempty" doc:"The thing after; absent for what was deleted"`
	// Version is the one that the change left; 0 for none.
	Version int64 `json:"version,omitempty" doc:"Version of the thing after the change"`
	UndoOf  int64 `json:"undoOf,omitempty" doc:"The entry that this one undid"`
	// Fixed says why the change cannot be undone, where it is known to be so for good.
	Fixed string `json:"fixed,omitempty" doc:"Why it cannot be undone"`
	// Hash is of this entry and the hash before it: anyone who changes or takes out an entry breaks the chain.
	Hash string `json:"hash,omitempty" doc:"SHA-256 of this entry and the hash of the one before, in hex; absent for entries of versions without the chain"`
	Refs []Ref  `json:"-"` // what Detail, Before and After name; not in the hash, which is of what people read
}

// AuditChange is what an edit did to a thing.
type AuditChange string

// What an edit can do.
const (
	AuditCreate AuditChange = "create"
	AuditUpdate AuditChange = "update"
	AuditDelete AuditChange = "delete"
)

// IsRefused reports whether the request failed.
func (a *Audit) IsRefused() bool { return a.Status >= 400 }

// AuditFilter narrows the audit; empty fields do not.
type AuditFilter struct {
	Actor     string // as a whole
	Noun      string
	Name      string
	HostID    HostID
	Operation string
	Since     time.Time // not before
	Until     time.Time // before
	// IsRefused leaves only what was refused, IsChange only edits that were made.
	IsRefused, IsChange bool
}
