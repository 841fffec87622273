package main

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func operations(c *client.Client) client.Noun[inventory.Operation] { return c.Operations.Noun }

type operationCommand struct {
	List   operationList   `cmd:"" help:"List what is being done with hosts, and with --all what was, latest first."`
	Show   operationShow   `cmd:"" help:"Show an operation."`
	Wait   operationWait   `cmd:"" help:"Follow an operation until it has ended."`
	Cancel operationCancel `cmd:"" help:"End operations; their hosts are quarantined where going on would not be safe."`
}

type operationList struct {
	Host    string `help:"Only those with this host." placeholder:"HOST"`
	Machine string `help:"Only those for this machine." placeholder:"MACHINE"`
	Kind    string `help:"Only this kind, such as install." placeholder:"KIND"`
	All     bool   `help:"Those that have ended as well."`
	Limit   int    `default:"50" help:"At most so many; 0 for all."`
}

// Run lists operations. Of one host or machine, those that have ended are listed as well.
func (c *operationList) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	q := client.OperationQuery{Host: c.Host, Machine: c.Machine, Kind: c.Kind, IsOpen: !c.All && c.Host == "" && c.Machine == "", Limit: 500}
	if c.Limit > 0 {
		q.Limit = min(q.Limit, c.Limit)
	}
	list := []inventory.Operation{}
	for isMore := true; isMore; {
		page, err := api.Operations.Find(s.ctx, q)
		if err != nil {
			return err
		}
		list = append(list, page.Items...)
		q.After, isMore = page.Next, page.Next != "" && (c.Limit <= 0 || len(list) < c.Limit)
	}
	if c.Limit > 0 {
		s.sayCut(c.Limit, q.After != "" || len(list) > c.Limit)
		list = list[:min(len(list), c.Limit)]
	}
	names := s.hostNames()
	return s.show(list, func(t *tableWriter) {
		t.row("ID", "KIND", "HOST", "MACHINE", "STEP", "STATE", "STARTED", "TOOK", "PROGRESS", "REASON")
		for i := range list {
			o := &list[i]
			t.row(o.ID, string(o.Kind), names(o.HostID), o.Machine, string(o.Step), string(o.State), timeText(o.StartedAt), lasted(o, time.Now()), shortProgress(o), o.Reason)
		}
	})
}

// lasted says how long an operation took, or has been going on.
func lasted(o *inventory.Operation, now time.Time) string {
	if !o.EndedAt.IsZero() {
		now = o.EndedAt
	}
	return inventory.Duration(max(0, now.Sub(o.StartedAt)).Round(time.Second)).String()
}

// shortProgress is how far the step is, for a column.
func shortProgress(o *inventory.Operation) string {
	if !o.IsOpen() || o.Progress.Total <= 0 {
		return ""
	}
	return fmt.Sprintf("%d %%", min(100, int(100*float64(o.Progress.Bytes)/float64(o.Progress.Total))))
}

type operationShow struct {
	Operation string `arg:"" help:"Its id."`
}

// Run shows an operation.
func (c *operationShow) Run(s *session) error {
	return showOne(s, operations, c.Operation, func(t *tableWriter, o inventory.Operation) {
		t.field("operation", o.ID)
		t.field("kind", string(o.Kind))
		t.field("host", s.hostNames()(o.HostID))
		t.field("machine", o.Machine)
		t.field("pool", o.Pool)
		t.field("step", string(o.Step))
		t.field("state", string(o.State))
		t.field("because", o.Reason)
		t.field("hint", o.Hint)
		if o.AttemptN > 1 {
			t.field("attempt", fmt.Sprint(o.AttemptN))
		}
		t.field("progress", progressText(&o))
		t.field("asked for by", o.By)
		t.field("started", timeText(o.StartedAt))
		t.field("step since", timeText(o.StepAt))
		if o.IsOpen() {
			t.field("late after", timeText(o.DeadlineAt))
		}
		t.field("ended", timeText(o.EndedAt))
		t.field("took", lasted(&o, time.Now()))
	})
}

type operationWait struct {
	Operation string        `arg:"" help:"Its id."`
	For       time.Duration `help:"No longer than this." placeholder:"DURATION"`
}

// Run follows an operation; one that ends badly is a failure.
func (c *operationWait) Run(s *session) error {
	f, err := s.follow(nil)
	if err != nil {
		return err
	}
	o, err := f.api.Operations.Get(s.ctx, c.Operation)
	if err != nil {
		return err
	}
	wait := waitForEver
	if c.For > 0 {
		wait = waitFlag(c.For)
	}
	if o, err = s.waitOperation(f, o, wait); err != nil {
		return err
	}
	return s.stored(o)
}

type operationCancel struct {
	Operations []string `arg:"" help:"Their ids."`
}

// Run ends operations.
func (c *operationCancel) Run(s *session) error {
	return s.each(c.Operations, func(api *client.Client, id string) error {
		o, err := api.Operations.Cancel(s.ctx, id)
		if err != nil {
			return err
		}
		return s.show(o, func(t *tableWriter) { t.row(o.ID, string(o.Kind), string(o.State)) })
	})
}
