package rest

import (
	"net/http"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

// Operation describes one operation as far as it differs from the others.
type Operation struct {
	Method, Path string // path below /api/v1
	ID           string // unique, verb-noun
	Tag          string // the noun, in plural
	Summary      string
	About        string
	Errors       []int              // statuses besides those that every operation may give
	Status       int                // of success, when not 200 or 204
	Dry          bool               // takes dryRun: a success without change is a Diff with status 200
	Result       any                // type of the body, where the handler's own type hides it; with dry, it is this or a Diff
	Body         int64              // most bytes of the body: 1 MiB
	IsLong       bool               // works until it is done, however long that takes
	Plain        string             // media type of a body that is not JSON
	Within       time.Duration      // for the handler: 30 s
	Needs        inventory.UserRole // role of the caller: viewer for a GET, operator for all else
	Scope        Scope              // of what it speaks, which says where the role is needed: everywhere
	Asks         bool               // changes nothing, though it is no GET: the audit leaves it out
	IsLogged     bool               // is in the audit, though it is a GET
	AnyQuery     bool               // the other side adds parameters of its own to the address
	ForClusters  bool               // the token of a cluster is let in: the handler keeps it to what is the cluster's
	AtAny        bool               // reads the inventory and nothing else: every instance answers it, not only the leader
}

// Scope says of what the reads of an operation speak. Writes need the role everywhere.
type Scope = noun.Scope

// The scopes; see package noun.
const (
	OfAll    = noun.OfAll
	OfPools  = noun.OfPools
	OfNobody = noun.OfNobody
)

// needed returns the role that an operation needs.
func (o Operation) needed() inventory.UserRole {
	switch {
	case o.Needs != "":
		return o.Needs
	case o.Method == http.MethodGet:
		return inventory.Viewer
	}
	return inventory.Operator
}
