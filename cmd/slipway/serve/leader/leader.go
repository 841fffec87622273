// Package leader is what machines need of the instance that has the engine, while they speak to another one. Remote asks over the link of
// package peer, and Answer answers with the engine. Both ends have the methods of Engine, so listeners do not know which instance decides.
//
// Questions wait for their answers. Notes do not: Remote sends them in their order, many at once, from a bounded queue.
package leader

import (
	"context"
	"net/netip"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// Engine decides what machines boot, and takes what they report. The listeners have the contract of each method: dhcp.Boots, tftp.Boots,
// tftp.Scripts, httpboot.Boots and httpboot.Agents.
type Engine interface {
	Offer(ctx context.Context, c pxe.Client, base string) pxe.Reply
	Ask(ctx context.Context, s inventory.SessionID, source netip.Addr, base string) ([]byte, error)
	Script(ctx context.Context, s inventory.SessionID, c pxe.Client, base string) ([]byte, error)
	Report(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, r pxe.Report) error
	Document(ctx context.Context, r pxe.ConfigRequest) (pxe.ConfigDocument, error)
	Artefact(ctx context.Context, s inventory.SessionID, source netip.Addr, d inventory.Digest, name string) (inventory.Digest, error)
	Initrds(ctx context.Context, s inventory.SessionID, source netip.Addr) (files []inventory.ImageArtefact, hasConfig bool, err error)
	AgentTask(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, version int, base string) (wire.Task, error)
	AgentReport(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, r wire.Report) error

	Note(ctx context.Context, c pxe.Client, kind, detail string)
	Conflict(a netip.Addr, subnet string, who inventory.MAC, detail string)
	Exhausted(subnet string)
	Beside(c pxe.Client, isHeard bool)
	Foreign(f pxe.ForeignServer)
	// ForeignGone says which other DHCP servers an instance has noticed on some subnets, and for how long it has listened.
	ForeignGone(noticed []pxe.ForeignServer, subnets []string, listened time.Duration)
	Unanswered(c pxe.Client, iface, reason string, isMeant bool)
	Transferring(t pxe.Transfer)
	Transferred(t pxe.Transfer)
}

// Record keeps what machines said on the wire. An engine explains by it why a machine is stuck.
type Record interface {
	Add(f trace.Frame)
	Tell(mac inventory.MAC, n trace.Note)
}

// machine is who a question is about.
type machine struct {
	Session   inventory.SessionID `json:"session,omitempty"`
	Source    netip.Addr          `json:"source"`
	Neighbour inventory.MAC       `json:"neighbour,omitempty"` // the MAC of Source in the neighbour table of the asking instance
	Key       string              `json:"key,omitempty"`
	Base      string              `json:"base,omitempty"` // URL of the boot listener as the machine reaches it
}

// The questions, with the paths below.
type (
	clientQuestion struct { // Offer, Script
		Machine machine
		Client  pxe.Client
	}
	reportQuestion struct {
		Machine machine
		Report  pxe.Report
	}
	documentQuestion struct {
		Machine machine
		Request pxe.ConfigRequest
	}
	artefactQuestion struct {
		Machine machine
		Digest  inventory.Digest
		Name    string
	}
	initrdsAnswer struct {
		Files     []inventory.ImageArtefact
		HasConfig bool
	}
	taskQuestion struct {
		Machine machine
		Version int
	}
	agentQuestion struct {
		Machine machine
		Report  wire.Report
	}
	nothing struct{}
)

const (
	root          = "/engine/"
	askOffer      = "offer"
	askAsk        = "ask"
	askScript     = "script"
	askReport     = "report"
	askDocument   = "document"
	askArtefact   = "artefact"
	askInitrds    = "initrds"
	askTask       = "agent-task"
	askAgent      = "agent-report"
	tellNotes     = "notes"
	notesPerCall  = 512
	notesWaiting  = 16_384 // some MB; a busy network makes a thousand in a second
	answerOfNotes = 5 * time.Second
)

// note is a call that nobody waits for: one of its fields is set.
type note struct {
	Event       *eventNote         `json:",omitempty"`
	Conflict    *conflictNote      `json:",omitempty"`
	Exhausted   string             `json:",omitempty"`
	Beside      *besideNote        `json:",omitempty"`
	Foreign     *pxe.ForeignServer `json:",omitempty"`
	Gone        *goneNote          `json:",omitempty"`
	Unanswered  *unansweredNote    `json:",omitempty"`
	Transfer    *transferNote      `json:",omitempty"`
	Frame       *trace.Frame       `json:",omitempty"`
	RecordNote  *trace.Note        `json:",omitempty"`
	RecordOfMAC inventory.MAC      `json:",omitempty"` // of RecordNote
}

type (
	eventNote struct {
		Client       pxe.Client
		Kind, Detail string
	}
	conflictNote struct {
		Address        netip.Addr
		Subnet, Detail string
		Who            inventory.MAC
	}
	besideNote struct {
		Client  pxe.Client
		IsHeard bool
	}
	goneNote struct {
		Noticed  []pxe.ForeignServer
		Subnets  []string
		Listened time.Duration
	}
	unansweredNote struct {
		Client        pxe.Client
		Iface, Reason string
		IsMeant       bool
	}
	transferNote struct {
		Transfer  pxe.Transfer // without Err
		Err       string
		Neighbour inventory.MAC
		IsOver    bool
	}
)

// notes are some notes in their order.
type notes struct {
	// Now is the time of the sender as it sends them. The receiver moves all times in them by the difference: clocks of instances may be an
	// hour apart.
	Now   time.Time
	LostN int // notes before these that the sender dropped, because its queue was full or nobody answered
	Notes []note
}
