package net_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/test/history"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// answerFor is how long a client of the API waits for an answer.
const answerFor = 3 * time.Second

// asker is one client. It asks any of the servers.
type asker struct {
	*past
	name    string
	journal *history.Journal
	dice    *rand.Rand
	n       int
}

func (p *past) asker(name string) *asker {
	p.mu.Lock()
	defer p.mu.Unlock()
	path := filepath.Join(p.dir, name)
	journal, err := history.Create(path)
	if err != nil {
		p.T.Error(err)
		return nil
	}
	p.journals = append(p.journals, path)
	return &asker{past: p, name: name, journal: journal, dice: rand.New(rand.NewPCG(p.seed, uint64(len(p.journals))))}
}

// ask starts all clients. They ask until the end.
func (p *past) ask() {
	p.began = time.Now()
	for n, mac := range machineMACs() {
		m := &machine{asker: p.asker(fmt.Sprint("machine-", n)), mac: mac, isPatient: n%2 == 0, may: map[string]bool{}}
		p.repeat(m.asker, m.live)
	}
	for kind, do := range map[string]struct {
		n  int
		do func(*asker)
	}{
		"claims": {3, (*asker).claims}, "power": {3, (*asker).power}, "pools": {3, (*asker).pools}, "labels": {2, (*asker).labels},
		"flags": {2, (*asker).flags}, "tokens": {2, (*asker).tokens}, "leases": {1, (*asker).leases},
	} {
		for n := range do.n {
			a := p.asker(fmt.Sprint(kind, "-", n))
			p.repeat(a, func() { do.do(a) })
		}
	}
}

func (p *past) repeat(a *asker, do func()) {
	p.work.Go(func() {
		for p.ctx.Err() == nil {
			time.Sleep(time.Duration(50+a.dice.IntN(150)) * time.Millisecond)
			do()
		}
	})
}

// round is the number of the round now.
func (p *past) round() int { return min(int(time.Since(p.began)/roundFor), p.rounds-1) }

// one is a thing of this round.
func (a *asker) one(kind string) string { return thing(kind, a.round(), a.dice.IntN(eachN)) }

// unique is a name that no other client uses.
func (a *asker) unique() string {
	a.n++
	return fmt.Sprintf("%s-%d", a.name, a.n)
}

// api is any of the servers.
func (a *asker) api() *client.Client { return a.servers[a.dice.IntN(len(a.servers))].API }

// within is how long a request may take. It may outlive the history: its answer counts.
func (a *asker) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(a.ctx), answerFor)
}

// errRefused says that the thing is not as the client wanted it, and who has it.
var errRefused = errors.New("refused")

// ask writes down a request and its answer. Do fills in what it learns. After an answer that was lost, a client waits before it asks again.
func (a *asker) ask(r history.Request, do func(*history.Answer) error) history.Answer {
	heard, err := a.journal.Ask(r, func() history.Answer {
		heard := history.Answer{}
		err := do(&heard)
		if heard.Is = outcome(err); err != nil && !errors.Is(err, errRefused) {
			a.note(string(heard.Is)+" "+string(r.Do)+" "+r.Model, err)
		}
		return heard
	})
	if err != nil {
		a.T.Error(err)
	}
	if heard.Is == history.Unknown {
		time.Sleep(500 * time.Millisecond)
	}
	return heard
}

// note counts an answer that was no. Of one that no server gave the cause is enough.
func (p *past) note(to string, err error) {
	text := err.Error()
	if e, ok := errors.AsType[*net.OpError](err); ok {
		text = e.Op + ": " + e.Err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noes[to+": "+text]++
}

// read writes down what a server shows. A read without an answer says nothing.
func (a *asker) read(model, key string, do func(context.Context, *history.Answer) error) history.Answer {
	r := history.Request{Model: model, Key: key, Do: history.Read, Who: a.name}
	heard, err := a.journal.Ask(r, func() history.Answer {
		ctx, cancel := a.within()
		defer cancel()
		heard := history.Answer{Is: history.Done}
		if err := do(ctx, &heard); err != nil {
			a.note("read "+model, err)
			return history.Answer{Is: history.Failed}
		}
		return heard
	})
	if err != nil {
		a.T.Error(err)
	}
	return heard
}

// nothingDone are the answers by which a server promises that it has done nothing.
var nothingDone = []string{
	"no instance has the engine", "the instance with the engine does not answer", "does not have the engine at the moment", "has lost duty engine",
	"the database cannot be reached",
}

// outcome says what an answer promises.
func outcome(err error) history.Outcome {
	if err == nil {
		return history.Done
	}
	if errors.Is(err, errRefused) {
		return history.Refused
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" { // nobody has read the request
		return history.Failed
	}
	for _, text := range nothingDone {
		if strings.Contains(err.Error(), text) {
			return history.Failed
		}
	}
	if inventory.IsKind(err, inventory.Conflict) || inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Unauthorized) {
		return history.Failed // a server that says no has done nothing
	}
	return history.Unknown
}

// claims is somebody who makes machines of adopted hosts, and deletes them.
func (a *asker) claims() {
	host := a.one("claim")
	is := a.read(history.Hosts, host, func(ctx context.Context, heard *history.Answer) error {
		h, err := a.api().Hosts.Get(ctx, host)
		heard.Holder = h.Machine
		return err
	})
	r := history.Request{Model: history.Hosts, Key: host, Do: history.Take, Who: a.unique()}
	if is.Holder != "" && a.dice.IntN(4) > 0 {
		r.Do, r.Who = history.Give, is.Holder
	}
	a.ask(r, func(heard *history.Answer) error {
		ctx, cancel := a.within()
		defer cancel()
		if r.Do == history.Give {
			_, isGone, err := a.api().Machines.Remove(ctx, r.Who, false)
			if inventory.IsKind(err, inventory.NotFound) {
				heard.Holder, heard.Other = history.Another, history.Another
				return errRefused
			}
			if err == nil && !isGone {
				return errors.New("the machine is still there")
			}
			return err
		}
		_, err := a.api().Machines.Adopt(ctx, inventory.Machine{Name: r.Who, Profile: profileOfAll}, host)
		if holder, ok := after(err, " is claimed by machine "); ok {
			heard.Holder = holder
			return errRefused
		}
		return err
	})
}

// after is the word behind some text in an answer.
func after(err error, text string) (word string, ok bool) {
	if err == nil || !inventory.IsKind(err, inventory.Conflict) {
		return "", false
	}
	_, rest, ok := strings.Cut(err.Error()+"\n"+inventory.HintOf(err), text)
	word, _, _ = strings.Cut(rest, "\n")
	word, _, _ = strings.Cut(word, " ")
	return word, ok
}

// power is somebody who switches hosts without a controller, and takes that back. Such an operation waits for a person.
func (a *asker) power() {
	host := a.one("power")
	open := a.read(history.Operations, host, func(ctx context.Context, heard *history.Answer) error {
		page, err := a.api().Operations.List(ctx, client.Query{Host: host, Open: true})
		if err == nil && len(page.Items) > 0 {
			heard.Holder = page.Items[0].ID
		}
		return err
	})
	r := history.Request{Model: history.Operations, Key: host, Do: history.Take}
	if open.Holder != "" && a.dice.IntN(4) > 0 {
		r.Do, r.Who = history.Give, open.Holder
	}
	a.ask(r, func(heard *history.Answer) error {
		ctx, cancel := a.within()
		defer cancel()
		if r.Do == history.Give {
			_, err := a.api().Operations.Cancel(ctx, r.Who)
			if _, ok := after(err, "operation "+r.Who+" is "); ok {
				heard.Holder = history.Another
				return errRefused
			}
			return err
		}
		o, err := a.api().Hosts.Power(ctx, host, "off")
		heard.Holder = o.ID
		if id, ok := after(err, "slipway operation cancel "); ok {
			heard.Holder = id
			return errRefused
		}
		return err
	})
}

// edit writes a record in place of the version that a client has read.
func (a *asker) edit(key string, is history.Answer, do func(ctx context.Context, value string) (version int64, err error)) {
	r := history.Request{Model: history.Versions, Key: key, Do: history.Write, Who: a.name, Epoch: is.Epoch, Value: a.unique()}
	a.ask(r, func(heard *history.Answer) (err error) {
		ctx, cancel := a.within()
		defer cancel()
		heard.Epoch, err = do(ctx, r.Value)
		if inventory.IsKind(err, inventory.Conflict) {
			return errRefused
		}
		return err
	})
}

// pools is somebody who edits pools, which each server keeps in memory.
func (a *asker) pools() {
	pool := a.one("pool")
	is := a.read(history.Versions, pool, func(ctx context.Context, heard *history.Answer) error {
		p, err := a.api().Pools.Get(ctx, pool)
		if inventory.IsKind(err, inventory.NotFound) {
			return nil
		}
		heard.Epoch, heard.Value = p.Version, strings.TrimPrefix(p.Selector, "rack=")
		return err
	})
	if is.Is != history.Done || a.dice.IntN(2) == 0 {
		return
	}
	a.edit(pool, is, func(ctx context.Context, value string) (int64, error) {
		want := wire.Pool{Pool: inventory.Pool{Name: pool, Selector: "rack=" + value}}
		if is.Epoch == 0 {
			p, err := a.api().Pools.Create(ctx, want)
			return p.Version, err
		}
		p, err := a.api().Pools.Put(ctx, pool, want, client.IfVersion(is.Epoch))
		return p.Version, err
	})
}

// labels is somebody who edits hosts.
func (a *asker) labels() {
	host := a.one("edit")
	is := a.read(history.Versions, host, func(ctx context.Context, heard *history.Answer) error {
		h, err := a.api().Hosts.Get(ctx, host)
		heard.Epoch, heard.Value = h.Version, h.Labels["is"]
		return err
	})
	if is.Is != history.Done || a.dice.IntN(2) == 0 {
		return
	}
	a.edit(host, is, func(ctx context.Context, value string) (int64, error) {
		h, err := a.api().Hosts.Patch(ctx, host, wire.HostPatch{Labels: map[string]*string{"is": &value}}, client.IfVersion(is.Epoch))
		return h.Version, err
	})
}

// flags is somebody who puts hosts into maintenance and takes them out.
func (a *asker) flags() {
	host := a.one("flag")
	a.readFlag(host, a.api())
	on := a.dice.IntN(2) == 0
	a.ask(history.Request{Model: history.Flags, Key: host, Do: history.Write, Who: a.name, Value: onOrOff(on)}, func(*history.Answer) error {
		ctx, cancel := a.within()
		defer cancel()
		_, err := a.api().Hosts.Maintain(ctx, host, on)
		return err
	})
	a.readFlag(host, a.api())
}

func (a *asker) readFlag(host string, at *client.Client) {
	a.read(history.Flags, host, func(ctx context.Context, heard *history.Answer) error {
		h, err := at.Hosts.Get(ctx, host)
		heard.Value = onOrOff(h.InMaintenance)
		return err
	})
}

func onOrOff(on bool) string {
	if on {
		return "on"
	}
	return ""
}

// tokens is somebody who makes a token, comes in with it at all servers, deletes it, and tries again.
func (a *asker) tokens() {
	name := a.unique()
	take := history.Request{Model: history.Access, Key: name, Do: history.Take, Who: name}
	secret := ""
	if made := a.ask(take, func(*history.Answer) error {
		ctx, cancel := a.within()
		defer cancel()
		t, err := a.api().NewToken(ctx, client.TokenWish{Name: name, Grants: inventory.Grants{{Role: inventory.Viewer}}})
		secret = t.Secret
		return err
	}); made.Is != history.Done {
		return
	}
	for i := range a.servers {
		a.comesIn(name, secret, i)
	}
	deleted := make(chan struct{})
	other := *a
	go func() {
		defer close(deleted)
		give := take
		give.Do = history.Give
		at := other.servers[len(name)%len(other.servers)].API
		other.ask(give, func(heard *history.Answer) error {
			ctx, cancel := a.within()
			defer cancel()
			return at.Tokens.Delete(ctx, name)
		})
	}()
	a.comesIn(name, secret, a.dice.IntN(len(a.servers)))
	<-deleted
	for i := range a.servers {
		a.comesIn(name, secret, i)
	}
}

// comesIn reads something with a token over TCP.
func (a *asker) comesIn(name, secret string, i int) {
	at := a.servers[i]
	c, err := client.New(client.Config{Server: "http://127.0.0.1:8067", Token: secret, Dial: a.Dial(at.Net.Server)})
	if err != nil {
		a.T.Error(err)
		return
	}
	defer c.Close()
	a.read(history.Access, name, func(ctx context.Context, heard *history.Answer) error {
		_, err := c.Pools.List(ctx, client.Query{Limit: 1})
		if inventory.IsKind(err, inventory.Unauthorized) {
			return nil
		}
		heard.Holder = name
		return err
	})
}

// leases is somebody who looks who has an address.
func (a *asker) leases() {
	a.readLease(addressOf(a.dice.IntN(addressN)).String(), a.api())
}

func (a *asker) readLease(address string, at *client.Client) history.Answer {
	return a.read(history.Leases, address, func(ctx context.Context, heard *history.Answer) error {
		l, err := at.Leases.Get(ctx, address)
		if inventory.IsKind(err, inventory.NotFound) {
			return nil
		}
		if l.State == inventory.LeaseBound {
			heard.Holder = string(l.MAC)
		}
		return err
	})
}

// readAll reads, when all is over, what each server shows.
func (p *past) readAll() {
	for i, server := range p.servers {
		a := p.asker(fmt.Sprint("last-", i))
		for n := range addressN {
			a.readLease(addressOf(n).String(), server.API)
		}
		for round := range p.rounds {
			for k := range eachN {
				a.readFlag(thing("flag", round, k), server.API)
			}
		}
	}
}
