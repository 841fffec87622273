package instances

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/provision/duty"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/test/history"
	"slipway.dev/slipway/web/totp"
)

// What the instances of a history have together. There is less of all than clients want, so that they meet.
const (
	addressN = 4 // in the subnet
	macN     = 6
	hostN    = 3
	machineN = 4
	codeFor  = 200 * time.Millisecond // after which all turn to the next code
)

// site is what a test gives to the processes of a history.
type site struct {
	Name, ID  string // of the instance
	URL       string
	Journal   string     // path
	Codes     [][]string // of each user
	BeganAt   time.Time
	IsVerbose bool
}

func (s *site) text() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// clients are those of one instance. They share its store, its duties and its journal.
type clients struct {
	site
	store   inventory.Store
	keeper  *duty.Keeper
	journal *history.Journal
	callN   atomic.Int64
}

// ask is an instance whose clients ask for leases, claims, operations and codes, until it is killed.
func ask(of string) error {
	c := &clients{}
	if err := json.Unmarshal([]byte(of), &c.site); err != nil {
		return err
	}
	var log *slog.Logger
	if c.IsVerbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("instance", c.Name)
	}
	ctx := context.Background()
	var err error
	if c.journal, err = history.Create(c.Journal); err != nil {
		return err
	}
	s, err := sqlstore.Open(ctx, sqlstore.Config{URL: c.URL, Log: log})
	for inventory.IsKind(err, inventory.Unavailable) { // the start meets a fault: systemd starts a server again
		time.Sleep(200 * time.Millisecond)
		s, err = sqlstore.Open(ctx, sqlstore.Config{URL: c.URL, Log: log})
	}
	if err != nil {
		return err
	}
	c.store = s
	c.keeper = duty.New(duty.Config{Store: s, Instance: inventory.Instance{ID: c.ID, Name: c.Name}, Log: log})
	c.keeper.Want(duties...)
	err = c.keeper.Register(ctx)
	for inventory.IsKind(err, inventory.Unavailable) {
		time.Sleep(200 * time.Millisecond)
		err = c.keeper.Register(ctx)
	}
	if err != nil {
		return err
	}
	go c.whenever(ctx, 2, c.claims)
	go c.whenever(ctx, 1, c.code)
	go c.whenever(ctx, 1, func(ctx context.Context) { c.reads(ctx, duties[rand.IntN(len(duties))]) })
	for _, d := range duties {
		go func() { _ = c.keeper.While(ctx, d, func(ctx context.Context) error { return c.work(ctx, d) }) }()
	}
	return c.keeper.Run(ctx)
}

// work is what the clients ask under a duty, in one epoch. It begins with what the database has, as a server does.
func (c *clients) work(ctx context.Context, d string) error {
	store, err := c.keeper.Under(c.store, d)
	if err != nil {
		return nil // it is over already
	}
	var epoch int64
	var book *lease.Book
	err = store.Write(ctx, func(tx inventory.Tx) error { // a Write, so that the epoch is surely the one of this work
		row, err := tx.FindDuty(d)
		if err != nil {
			return err
		}
		epoch = row.Epoch
		subnets, err := tx.Subnets().List(inventory.Page{})
		if err != nil {
			return err
		}
		leases, err := tx.ListLeases("", inventory.Page{})
		book = lease.New(lease.Network{Subnets: subnets}, leases)
		return err
	})
	if err != nil {
		return nil
	}
	go c.whenever(ctx, 1, func(ctx context.Context) { c.write(ctx, store, d, epoch) })
	if d == rack1 {
		c.whenever(ctx, 3, func(ctx context.Context) { c.lease(ctx, store, book) })
	} else {
		c.whenever(ctx, 4, func(ctx context.Context) { c.operation(ctx, store) })
	}
	return nil
}

// whenever lets n clients ask again and again until ctx ends. A client that has decided to ask does so after a pause, even if ctx has ended
// meanwhile: that is what a process does that was paused there.
func (c *clients) whenever(ctx context.Context, n int, ask func(context.Context)) {
	done := make(chan struct{})
	for range n {
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				time.Sleep(time.Duration(10+rand.IntN(30)) * time.Millisecond)
				ask(context.WithoutCancel(ctx))
			}
		}()
	}
	for range n {
		<-done
	}
}

// ask writes down a request and its answer. Do fills in what it learns.
func (c *clients) ask(r history.Request, do func(*history.Answer) error) history.Answer {
	a, err := c.journal.Ask(r, func() history.Answer {
		a := history.Answer{Is: history.Done}
		switch err := do(&a); {
		case err == nil:
		case errors.Is(err, errRefused):
			a.Is = history.Refused
		case strings.Contains(err.Error(), "not known whether"):
			a.Is = history.Unknown
		default:
			a.Is = history.Failed
		}
		return a
	})
	if err != nil {
		panic(err)
	}
	return a
}

// errRefused undoes a transaction in which a client was told who has the thing instead.
var errRefused = errors.New("somebody else has it")

// lease is a machine that asks for an address as DHCP gives it, and sometimes gives it back.
func (c *clients) lease(ctx context.Context, store inventory.Store, book *lease.Book) {
	of := lease.Client{Subnet: "rack1", MAC: macs()[rand.IntN(macN)], IsKnown: true}
	offer, why := book.Offer(of, netip.Addr{}, time.Now())
	if why != "" {
		return
	}
	time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond) // the offer is on its way
	r := book.Confirm(of, lease.Selecting, offer.Address, time.Now())
	if r.Verdict != lease.Ack {
		return
	}
	request := history.Request{Model: history.Leases, Key: offer.Address.String(), Do: history.Take, Who: string(of.MAC)}
	c.ask(request, func(*history.Answer) error {
		if err := save(ctx, store, r.Lease); err != nil {
			book.Abort(r.Lease, time.Now())
			return err
		}
		if !book.Commit(r.Lease) { // another answer to it counts
			return errRefused
		}
		return nil
	})
	if rand.IntN(3) > 0 {
		return
	}
	request.Do = history.Give
	if l, ok := book.Release(of, offer.Address, time.Now()); ok {
		c.ask(request, func(*history.Answer) error {
			if err := save(ctx, store, l); err != nil { // a RELEASE has no answer: the machine does not use the address any more
				return fmt.Errorf("it is not known whether it is stored: %w", err)
			}
			return nil
		})
	}
}

func save(ctx context.Context, store inventory.Store, l inventory.Lease) error {
	return store.Write(ctx, func(tx inventory.Tx) error { return tx.SaveLease(l) })
}

// claims is somebody who claims a host for a machine, or ends a claim. The database alone keeps hosts and machines apart: any instance does
// it, under no duty.
func (c *clients) claims(ctx context.Context) {
	h, m := hosts()[rand.IntN(hostN)], machines()[rand.IntN(machineN)]
	r := history.Request{Model: history.Hosts, Key: string(h), Do: history.Take, Who: m}
	if rand.IntN(2) == 0 {
		r.Do = history.Give
	}
	c.ask(r, func(a *history.Answer) error {
		return c.store.Write(ctx, func(tx inventory.Tx) error {
			machine, err := tx.FindMachine(m)
			if err != nil {
				return err
			}
			byHost, err := found(tx.FindClaimOfHost(h))
			if err != nil {
				return err
			}
			byMachine, err := found(tx.FindClaimOfMachine(machine.UID))
			if err != nil {
				return err
			}
			a.Holder, a.Other = byHost.Machine, string(byMachine.HostID)
			if r.Do == history.Give {
				if byHost.Machine != m {
					return errRefused
				}
				return tx.DeleteClaim(byHost.ID)
			}
			// The rule is that of the store: it refuses, and the answer says what was read before.
			claim := inventory.Claim{ID: inventory.ClaimID(c.id()), MachineUID: machine.UID, Machine: m, HostID: h}
			if err := tx.CreateClaim(&claim, time.Now()); inventory.IsKind(err, inventory.Conflict) {
				return errRefused
			} else if err != nil {
				return err
			}
			return nil
		})
	})
}

// found is what there is, or the zero value for nothing.
func found[T any](x T, err error) (T, error) {
	if inventory.IsKind(err, inventory.NotFound) {
		return x, nil
	}
	return x, err
}

// id is one that no other client has.
func (c *clients) id() string {
	return fmt.Sprintf("%s-%d-%d", c.Name, os.Getpid(), c.callN.Add(1))
}

// operation is somebody who starts an operation of a host, or ends the one that is open.
func (c *clients) operation(ctx context.Context, store inventory.Store) {
	h := hosts()[rand.IntN(hostN)]
	open, err := inventory.Read(ctx, store, func(tx inventory.Tx) (inventory.Operation, error) { return found(tx.FindOpenOperation(h)) })
	if err != nil {
		return
	}
	r := history.Request{Model: history.Operations, Key: string(h), Do: history.Take, Who: c.id()}
	if open.ID != "" && rand.IntN(2) == 0 {
		r.Do, r.Who = history.Give, open.ID
	}
	c.ask(r, func(a *history.Answer) error {
		return store.Write(ctx, func(tx inventory.Tx) error {
			is, err := found(tx.FindOpenOperation(h))
			if err != nil {
				return err
			}
			a.Holder = is.ID
			now := time.Now()
			if r.Do == history.Give {
				if is.ID != r.Who {
					return errRefused
				}
				is.State, is.EndedAt = inventory.OpDone, now
				return tx.UpdateOperation(&is, now)
			}
			err = tx.CreateOperation(&inventory.Operation{
				ID: r.Who, Kind: inventory.OpInspect, HostID: h, Step: inventory.StepBudget, State: inventory.OpRunning, AttemptN: 1,
			}, now)
			if inventory.IsKind(err, inventory.Conflict) {
				return errRefused
			}
			return err
		})
	})
}

// user is one of those who have codes that work once.
func user(n int) string { return fmt.Sprint("user", n) }

// code is somebody who tries the code that all try at this moment.
func (c *clients) code(ctx context.Context) {
	n := int(time.Since(c.BeganAt) / codeFor)
	of, at := n/totp.RecoveryN, n%totp.RecoveryN
	if of >= len(c.Codes) {
		return
	}
	r := history.Request{Model: history.Tokens, Key: fmt.Sprint("code ", n), Do: history.Take, Who: c.id()}
	c.ask(r, func(*history.Answer) error {
		return c.store.Write(ctx, func(tx inventory.Tx) error {
			u, err := tx.Users().Find(user(of))
			if err != nil {
				return err
			}
			var left []string
			if err := json.Unmarshal(u.SealedFactors, &left); err != nil {
				return err
			}
			left, isRight := totp.UseRecovery(left, c.Codes[of][at])
			if !isRight {
				return errRefused
			}
			text, err := json.Marshal(left)
			if err != nil {
				return err
			}
			return tx.SaveFactors(u.Name, text)
		})
	})
}

// write writes what its duty has a register for, and hears what was there. Profiles are among what each instance keeps in memory.
func (c *clients) write(ctx context.Context, store inventory.Store, d string, epoch int64) {
	r := history.Request{Model: history.Duties, Key: d, Do: history.Write, Who: c.Name, Epoch: epoch, Value: c.id()}
	c.ask(r, func(a *history.Answer) error {
		err := store.Write(ctx, func(tx inventory.Tx) error {
			p, err := register(tx, d, a)
			if err != nil {
				return err
			}
			p.Parameters = map[string]string{"holder": r.Who, "epoch": fmt.Sprint(r.Epoch), "value": r.Value}
			return tx.Profiles().Update(&p, time.Now())
		})
		if inventory.IsKind(err, inventory.Conflict) { // the fence
			return errRefused
		}
		return err
	})
}

// reads asks what was written last.
func (c *clients) reads(ctx context.Context, d string) {
	c.ask(history.Request{Model: history.Duties, Key: d, Do: history.Read, Who: c.Name}, func(a *history.Answer) error {
		return c.store.Read(ctx, func(tx inventory.Tx) error {
			_, err := register(tx, d, a)
			return err
		})
	})
}

// register reads the register of a duty.
func register(tx inventory.Tx, d string, a *history.Answer) (inventory.Profile, error) {
	p, err := tx.Profiles().Find(profileOf(d))
	if err != nil {
		return p, err
	}
	a.Holder, a.Value = p.Parameters["holder"], p.Parameters["value"]
	_, err = fmt.Sscan(p.Parameters["epoch"], &a.Epoch)
	if p.Parameters == nil {
		err = nil
	}
	return p, err
}

func profileOf(d string) string { return "of-" + strings.ReplaceAll(d, "/", "-") }

func macs() (all []inventory.MAC) {
	for n := range macN {
		all = append(all, inventory.MAC(fmt.Sprintf("52:54:00:00:00:%02x", n)))
	}
	return all
}

func hosts() (all []inventory.HostID) {
	for n := range hostN {
		all = append(all, inventory.HostID(fmt.Sprintf("00000000-0000-7000-8000-%012d", n)))
	}
	return all
}

func machines() (all []string) {
	for n := range machineN {
		all = append(all, fmt.Sprint("m", n))
	}
	return all
}

// fill stores what the clients ask for, and returns codes for so long.
func fill(ctx context.Context, store inventory.Store, last time.Duration) (codes [][]string, err error) {
	now := time.Now()
	digest := inventory.Digest("sha256:" + strings.Repeat("ab", 32))
	subnet := inventory.Subnet{
		Name: "rack1", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Mode: inventory.ModeFull, Unknown: inventory.UnknownWait,
		Ranges: []inventory.Range{{First: netip.MustParseAddr("10.0.0.1"), Last: netip.AddrFrom4([4]byte{10, 0, 0, addressN})}},
	}
	subnet.FillDefaults()
	image := inventory.Image{
		Name: "live", OS: "custom", Release: "1", Arch: inventory.X8664,
		Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: digest}},
	}
	err = store.Write(ctx, func(tx inventory.Tx) error {
		codes = nil
		all := []error{
			tx.Subnets().Create(&subnet, now),
			tx.SaveArtefact(inventory.Artefact{Digest: digest, SizeBytes: 1, Source: "test", CreatedAt: now}),
			tx.Images().Create(&image, now),
		}
		for n := range int(last/codeFor)/totp.RecoveryN + 1 {
			plain, hashes := totp.NewRecovery()
			codes = append(codes, plain)
			factors, err := json.Marshal(hashes)
			if err != nil {
				return err
			}
			all = append(all, tx.Users().Create(&inventory.User{Name: user(n)}, now), tx.SaveFactors(user(n), factors))
		}
		for _, d := range duties {
			all = append(all, tx.Profiles().Create(&inventory.Profile{Name: profileOf(d), Image: "live"}, now))
		}
		for n, id := range hosts() {
			h := inventory.Host{ID: id, Name: fmt.Sprint("h", n), State: inventory.Available, NICs: []inventory.NIC{{MAC: macs()[n]}}}
			all = append(all, tx.CreateHost(&h, now))
		}
		for _, name := range machines() {
			m := inventory.Machine{Name: name, UID: "uid-" + name, Profile: profileOf(inventory.DutyEngine), Phase: inventory.MachinePending}
			all = append(all, tx.CreateMachine(&m, now))
		}
		return errors.Join(all...)
	})
	return codes, err
}
