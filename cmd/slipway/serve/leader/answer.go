package leader

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Answerer answers the instances that have no engine.
type Answerer struct {
	Engine Engine
	Record Record
	// Learn notes the MAC of an address on a network of another instance. Our kernel has no neighbour table for it.
	Learn func(netip.Addr, inventory.MAC)
	Now   func() time.Time
	Log   *slog.Logger
}

// Register adds the questions to what the link answers.
func (a *Answerer) Register(link interface{ Handle(string, http.Handler) }) {
	for path, h := range map[string]http.Handler{
		askOffer: peer.Handler(func(ctx context.Context, q clientQuestion) (pxe.Reply, error) {
			return a.Engine.Offer(ctx, q.Client, q.Machine.Base), nil
		}),
		askAsk: question(a, func(ctx context.Context, m machine, _ machine) ([]byte, error) {
			return a.Engine.Ask(ctx, m.Session, m.Source, m.Base)
		}, func(q *machine) machine { return *q }),
		askScript: question(a, func(ctx context.Context, m machine, q clientQuestion) ([]byte, error) {
			return a.Engine.Script(ctx, m.Session, q.Client, m.Base)
		}, func(q *clientQuestion) machine { return q.Machine }),
		askReport: question(a, func(ctx context.Context, m machine, q reportQuestion) (nothing, error) {
			return nothing{}, a.Engine.Report(ctx, m.Session, m.Source, m.Key, q.Report)
		}, func(q *reportQuestion) machine { return q.Machine }),
		askDocument: question(a, func(ctx context.Context, _ machine, q documentQuestion) (pxe.ConfigDocument, error) {
			return a.Engine.Document(ctx, q.Request)
		}, func(q *documentQuestion) machine { return q.Machine }),
		askArtefact: question(a, func(ctx context.Context, m machine, q artefactQuestion) (inventory.Digest, error) {
			return a.Engine.Artefact(ctx, m.Session, m.Source, q.Digest, q.Name)
		}, func(q *artefactQuestion) machine { return q.Machine }),
		askInitrds: question(a, func(ctx context.Context, m machine, _ machine) (i initrdsAnswer, err error) {
			i.Files, i.HasConfig, err = a.Engine.Initrds(ctx, m.Session, m.Source)
			return i, err
		}, func(q *machine) machine { return *q }),
		askTask: question(a, func(ctx context.Context, m machine, q taskQuestion) (wire.Task, error) {
			return a.Engine.AgentTask(ctx, m.Session, m.Source, m.Key, q.Version, m.Base)
		}, func(q *taskQuestion) machine { return q.Machine }),
		askAgent: question(a, func(ctx context.Context, m machine, q agentQuestion) (nothing, error) {
			return nothing{}, a.Engine.AgentReport(ctx, m.Session, m.Source, m.Key, q.Report)
		}, func(q *agentQuestion) machine { return q.Machine }),
		tellNotes: peer.Handler(a.take),
	} {
		link.Handle("POST "+root+path, h)
	}
}

// question answers a question about a machine, once its neighbour is known.
func question[Q, A any](a *Answerer, fn func(context.Context, machine, Q) (A, error), of func(*Q) machine) http.Handler {
	return peer.Handler(func(ctx context.Context, q Q) (A, error) {
		m := of(&q)
		a.learn(m.Source, m.Neighbour)
		return fn(ctx, m, q)
	})
}

func (a *Answerer) learn(at netip.Addr, mac inventory.MAC) {
	if at.IsValid() && mac != "" {
		a.Learn(at, mac)
	}
}

// take hands notes on to the engine.
func (a *Answerer) take(ctx context.Context, ns notes) (nothing, error) {
	if ns.LostN > 0 {
		a.Log.Warn("notes of another instance were lost", "count", ns.LostN)
	}
	ahead := a.Now().Sub(ns.Now)
	for _, n := range ns.Notes {
		a.note(ctx, n, ahead)
	}
	return nothing{}, nil
}

// note hands one note on. Ahead is how far our clock is ahead of the sender's.
func (a *Answerer) note(ctx context.Context, n note, ahead time.Duration) {
	switch {
	case n.Event != nil:
		a.Engine.Note(ctx, n.Event.Client, n.Event.Kind, n.Event.Detail)
	case n.Conflict != nil:
		a.Engine.Conflict(n.Conflict.Address, n.Conflict.Subnet, n.Conflict.Who, n.Conflict.Detail)
	case n.Exhausted != "":
		a.Engine.Exhausted(n.Exhausted)
	case n.Beside != nil:
		a.Engine.Beside(n.Beside.Client, n.Beside.IsHeard)
	case n.Foreign != nil:
		f := *n.Foreign
		f.SinceAt, f.LastAt = f.SinceAt.Add(ahead), f.LastAt.Add(ahead)
		a.Engine.Foreign(f)
	case n.Gone != nil:
		a.Engine.ForeignGone(n.Gone.Noticed, n.Gone.Subnets, n.Gone.Listened)
	case n.Unanswered != nil:
		a.Engine.Unanswered(n.Unanswered.Client, n.Unanswered.Iface, n.Unanswered.Reason, n.Unanswered.IsMeant)
	case n.Transfer != nil:
		t := n.Transfer.Transfer
		a.learn(t.Source, n.Transfer.Neighbour)
		if n.Transfer.Err != "" {
			t.Err = errors.New(n.Transfer.Err)
		}
		if n.Transfer.IsOver {
			a.Engine.Transferred(t)
		} else {
			a.Engine.Transferring(t)
		}
	case n.Frame != nil:
		f := *n.Frame
		f.At = f.At.Add(ahead)
		a.Record.Add(f)
	case n.RecordNote != nil:
		r := *n.RecordNote
		r.At = r.At.Add(ahead)
		a.Record.Tell(n.RecordOfMAC, r)
	}
}
