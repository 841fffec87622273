package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/hardware/identity"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// The rules that guard a configuration on the boot network: level L1 of docs/secrets.md.
const (
	// armedFor is how long after its last sign a boot may fetch its configuration.
	armedFor = time.Hour
	// AgainFor is how long the machine itself may fetch a document with secrets again: tools retry, and read in stages.
	AgainFor = 2 * time.Minute
)

// Minter makes the tokens with which hosts join a target.
type Minter interface {
	// Mint returns a token for one node name of one boot; a repeat for the same boot returns the same one.
	Mint(ctx context.Context, t inventory.JoinTarget, h *inventory.Host, s inventory.SessionID, nodeName string) (string, error)
	// Revoke ends the tokens of a boot, RevokeHost those of a host.
	Revoke(ctx context.Context, s inventory.SessionID) error
	RevokeHost(ctx context.Context, h inventory.HostID) error
}

// ec2Folder is where the documents are found as EC2's metadata service lays them out.
const ec2Folder = "ec2/"

// delivery is a request for a document with all that is needed to answer it.
type delivery struct {
	pxe.ConfigRequest
	session   inventory.BootSession
	host      inventory.Host
	rendering inventory.Rendering
	docs      []inventory.RenderedDocument // those asked for
	isolated  bool                         // nothing guards its secrets
	neighbour inventory.MAC                // who uses Source on our own network, "" when the kernel does not know
	isOwn     bool                         // it comes from an address that the configuration gives the host
	secrets   []string                     // names of what the documents hold
}

func (d *delivery) hasSecret() bool {
	return slices.ContainsFunc(d.docs, func(r inventory.RenderedDocument) bool { return r.IsSecret })
}

// withSecrets names the secrets in the documents, for the timeline.
func (d *delivery) withSecrets() string {
	if len(d.secrets) == 0 {
		return ""
	}
	return " with " + strings.Join(d.secrets, ", ")
}

// told is what the event of a delivery says for programs.
func (d *delivery) told(size int) map[string]any {
	data := map[string]any{"document": d.Name, "bytes": size, "digest": d.rendering.Digest, "source": d.Source, "agent": d.Agent}
	if len(d.secrets) > 0 {
		data["secrets"] = d.secrets
	}
	return data
}

// Document returns a document of what the session was given to become, with its late values in place. A reason against it
// is an error for the machine's console and an event. If somebody may be after a secret, it is an issue, too.
func (dl *Deliverer) Document(ctx context.Context, r pxe.ConfigRequest) (pxe.ConfigDocument, error) {
	d := delivery{ConfigRequest: r}
	if err := dl.cfg.Store.Read(ctx, func(tx inventory.Tx) error { return dl.findIn(tx, &d) }); err != nil {
		return pxe.ConfigDocument{}, dl.refuse(ctx, &d, err)
	}
	if d.Name == "" {
		return pxe.ConfigDocument{ContentType: "text/plain; charset=utf-8", Data: []byte(strings.Join(dl.listed(ctx, &d), "\n") + "\n")}, nil
	}
	if len(d.docs) == 0 {
		return pxe.ConfigDocument{}, dl.refuse(ctx, &d, inventory.Errorf(inventory.NotFound, "there is no document %q", inventory.Clean(r.Name, 80)).
			WithHint("there are: %s", strings.ReplaceAll(d.names(), "\n", ", ")))
	}
	if err := d.readable(); err != nil {
		return pxe.ConfigDocument{}, dl.refuse(ctx, &d, err)
	}
	if d.hasSecret() && !dl.isStaged(&d) {
		if err := dl.allowed(ctx, &d); err != nil {
			return pxe.ConfigDocument{}, dl.refuse(ctx, &d, err)
		}
	}
	out, err := dl.inject(ctx, &d)
	if err != nil {
		return pxe.ConfigDocument{}, dl.refuse(ctx, &d, err)
	}
	if !r.IsPeek {
		dl.cfg.Recorder.Take(recorder.Note{Session: dl.fetched(d.session), Event: inventory.Event{
			At: dl.cfg.Now(), Kind: inventory.EventConfigSent, HostID: d.host.ID, SessionID: d.session.ID, MAC: d.session.MAC,
			Detail: inventory.Clean(fmt.Sprintf("%s, %d bytes%s, to %s %s", r.Name, len(out.Data), d.withSecrets(), r.Source, r.Agent), 300),
			Data:   d.told(len(out.Data)),
		}})
	}
	return out, nil
}

// fetched moves a session to the step of fetching its configuration.
func (dl *Deliverer) fetched(s inventory.BootSession) inventory.BootSession {
	s.LastAt = dl.cfg.Now()
	if session.StepIndex(inventory.EventConfigSent) > session.StepIndex(s.Step) {
		s.Step = inventory.EventConfigSent
	}
	dl.cfg.Sessions.Put(s)
	return s
}

// findIn reads what a request is about: its session, which must be a running boot of an image with a configuration, its
// host and the documents. Whoever is not the machine of that boot learns nothing but that.
func (dl *Deliverer) findIn(tx inventory.Tx, d *delivery) (err error) {
	if d.session, err = dl.sessionOf(tx, d.Session, d.Source); err != nil {
		return err
	}
	if d.host, err = tx.FindHost(d.session.HostID); err != nil {
		return fmt.Errorf("read host of boot session %s: %w", d.Session, err)
	}
	way, refusal := dl.admit(tx, &d.session, d.Source, "")
	d.isOwn = way == identity.ByConfig
	if err := cmp.Or(refusal, dl.findDocuments(tx, d)); refusal != nil || err != nil {
		return err
	}
	switch s := d.session; {
	case !s.EndedAt.IsZero():
		return inventory.Errorf(inventory.Forbidden, "this boot has ended: %s", s.Outcome).WithHint("boot the machine again")
	case dl.cfg.Now().Sub(s.LastAt) > armedFor:
		return inventory.Errorf(inventory.Forbidden, "this boot has been silent for over %s", inventory.Duration(armedFor)).WithHint("boot the machine again")
	}
	return nil
}

// findDocuments reads the documents that a request is about.
func (dl *Deliverer) findDocuments(tx inventory.Tx, d *delivery) (err error) {
	if d.session.Boot != string(pxe.BootImage) && d.session.Boot != string(pxe.BootAgent) {
		return inventory.Errorf(inventory.Forbidden, "this boot was decided as %s: %s", d.session.Boot, d.session.Reason)
	}
	if d.session.Config == "" {
		return inventory.Errorf(inventory.NotFound, "no configuration was rendered for this boot").
			WithHint("write one in profile %s and boot again", d.session.Profile)
	}
	if d.rendering, err = dl.delivered.find(tx, d.session.Config); err != nil {
		return fmt.Errorf("read rendering of boot session %s: %w", d.Session, err)
	}
	if p, err := tx.Profiles().Find(d.rendering.Profile); err == nil {
		d.isolated = p.Isolated && p.SavedByAdmin // the guard is for an admin to lift
	}
	name := d.Name
	if rest, ok := strings.CutPrefix(name, ec2Folder); ok {
		name = cloudinit.EC2Path(rest)
	}
	for _, doc := range d.rendering.Documents {
		if doc.Name == name || d.Name == pxe.ConfigArchive && doc.Path != "" {
			d.docs = append(d.docs, doc)
		}
	}
	if d.session.Boot == string(pxe.BootAgent) && !dl.isKey(d.Key, dl.DocumentKey(d.session.ID)) {
		err := inventory.Errorf(inventory.Forbidden, "the documents of this boot are for our agent, and the request came without its key").
			WithHint("the agent needs their address; boot the machine again")
		err.Err = errStranger
		return err
	}
	return nil
}

// configuredAddresses returns the addresses that the configuration of a boot gives the host itself: some tools set them
// before they fetch the rest of it. Only a server that has forgotten the rendering of the boot, because it was restarted,
// makes it again.
func (dl *Deliverer) configuredAddresses(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession) ([]netip.Addr, error) {
	if r := dl.cfg.Configurer.Rendered.Of(h.ID); r != nil && r.Digest == s.Config {
		return r.Addresses, nil
	}
	p, err := dl.cfg.Plan(tx, h, s.Subnet)
	if err != nil {
		return nil, err
	}
	r, err := dl.cfg.Configurer.ConfigOf(tx, h, p, s.MAC)
	if err != nil || r == nil || r.Digest != s.Config {
		return nil, err
	}
	return r.Addresses, nil
}

func (d *delivery) names() string {
	var names []string
	for _, doc := range d.rendering.Documents {
		names = append(names, doc.Name)
	}
	return strings.Join(names, "\n")
}

// readable holds back an Ignition configuration from a machine that says it cannot read that version: it would refuse
// it for ever.
func (d *delivery) readable() error {
	if d.rendering.Format != "ignition" || d.Accept == "" || d.Name == pxe.ConfigArchive {
		return nil
	}
	reads, ok := ignition.Negotiate(d.Accept)
	needs := ignition.SpecOf([]byte(d.docs[0].Text))
	if !ok || needs == "" || ignition.CanRead(reads, needs) {
		return nil
	}
	return inventory.Errorf(inventory.Conflict, "the configuration needs Ignition spec %s, and this image reads %s", needs, reads).
		WithHint("import the image with ignition version %s, or take out of profile %s what needs more", reads, d.rendering.Profile)
}

// guard counts the delivery of documents with secrets, before anything is sent, and refuses what is not the machine
// itself asking for the first time or again at once.
func (dl *Deliverer) guard(tx inventory.Tx, d *delivery) (refusal, err error) {
	if dl.cfg.Confidential != nil && !d.IsTLS {
		return inventory.Errorf(inventory.Forbidden, "this site sends secrets over TLS only").WithHint("boot the machine again: its script knows the way"), nil
	}
	if !d.isolated && d.session.Proof == inventory.ProofNone {
		return inventory.Errorf(inventory.Forbidden, "nothing shows that this boot is one of %s", d.host.Name).
			WithHint("when it is: slipway host confirm %s", d.host.Name), nil
	}
	now := dl.cfg.Now()
	var stranger error
	if !d.isolated {
		stranger = dl.stranger(tx, d)
	}
	isNew := false
	for _, doc := range d.docs {
		if !doc.IsSecret {
			continue
		}
		given, err := tx.FindDelivery(d.session.ID, doc.Name)
		isFirst := inventory.IsKind(err, inventory.NotFound)
		if err != nil && !isFirst {
			return nil, fmt.Errorf("read delivery of %s: %w", doc.Name, err)
		}
		switch {
		case d.isolated && !isFirst:
		case given.IsBurnt:
			return inventory.Errorf(inventory.Forbidden, "%s was asked for by somebody else; it is given out no more", doc.Name).
				WithHint("look at issue secret-refused of %s, then boot the machine again", d.host.Name), nil
		case stranger != nil && isFirst:
			return stranger, nil
		case stranger != nil:
			given.IsBurnt = true
			if err := tx.SaveDelivery(given); err != nil {
				return nil, fmt.Errorf("store delivery of %s: %w", doc.Name, err)
			}
			return stranger, nil
		case isFirst:
			isNew = true
			given = inventory.Delivery{SessionID: d.session.ID, Document: doc.Name, Source: d.Source, FirstAt: now}
		case now.Sub(given.FirstAt) > AgainFor:
			return inventory.Errorf(inventory.Forbidden, "%s was given out %s ago; it is given out once", doc.Name, inventory.Duration(now.Sub(given.FirstAt).Round(time.Second))).
				WithHint("boot the machine again for another one"), nil
		}
		if d.IsPeek { // it learns the length, and is given nothing
			continue
		}
		given.FetchN++
		given.LastAt = now
		if err := tx.SaveDelivery(given); err != nil {
			return nil, fmt.Errorf("store delivery of %s: %w", doc.Name, err)
		}
	}
	if d.IsPeek || !isNew {
		return nil, nil
	}
	return nil, dl.noteDelivery(tx, d)
}

// stranger says why a request for secrets cannot come from the host: our DHCP gave the address to no port of it, or
// the network says that another machine has it.
func (dl *Deliverer) stranger(tx inventory.Tx, d *delivery) error {
	refuse := func(format string, args ...any) error {
		return inventory.Errorf(inventory.Forbidden, format, args...).WithHint("only %s itself may fetch its secrets, from the address that our DHCP gave it", d.host.Name)
	}
	if d.isOwn { // nobody else vouches for that address
		if !slices.Contains(d.host.MACs(), d.neighbour) {
			return inventory.Errorf(inventory.Forbidden, "%s is an address of the configuration, and the network does not say that %s uses it", d.Source, d.host.Name).
				WithHint("reserve the address for the host, or let its configuration come in the initrd")
		}
		return nil
	}
	l, err := tx.FindLease(d.Source)
	switch {
	case inventory.IsKind(err, inventory.NotFound) && slices.Contains(d.host.MACs(), d.neighbour) && isBeside(tx, d.session.Subnet):
		return nil // another server gave the address, and our own network says that the host has it
	case err != nil:
		return refuse("%s holds no lease of ours", d.Source)
	case !slices.Contains(d.host.MACs(), l.MAC):
		return refuse("%s is leased to %s", d.Source, l.MAC)
	case l.State != inventory.LeaseBound || !dl.cfg.Now().Before(l.ExpiresAt):
		return refuse("the lease of %s has ended", d.Source)
	}
	if mac := d.neighbour; mac != "" && !slices.Contains(d.host.MACs(), mac) {
		return refuse("%s is used by %s, which is no port of %s", d.Source, mac, d.host.Name)
	}
	return nil
}

// refuse notes why a document was not given. A request that met the rules for secrets opens an issue and ends the
// tokens of the boot.
func (dl *Deliverer) refuse(ctx context.Context, d *delivery, err error) error {
	isAlarm, isStranger := inventory.IsKind(err, inventory.Forbidden) && d.hasSecret(), errors.Is(err, errStranger)
	kind := inventory.EventConfigRefused
	if isStranger { // the boot itself goes on, and nothing is wrong with it
		kind = inventory.EventSessionRefused
	}
	ev := inventory.Event{
		At: dl.cfg.Now(), Kind: kind, HostID: d.host.ID, SessionID: d.session.ID, MAC: d.session.MAC,
		Detail: inventory.Clean(fmt.Sprintf("%s, asked for by %s: %s", d.Name, d.Source, ledger.PublicMessage(err)), 500),
		Data:   map[string]any{"document": d.Name, "source": d.Source, "agent": d.Agent, "hint": inventory.HintOf(err), "kind": inventory.KindOf(err)},
		Refs:   inventory.OfMachine(d.host.Machine, inventory.RefsOf(err)...),
	}
	if d.host.ID != "" && dl.cfg.Refusals.First(string(d.session.ID)+d.Source.String()+ledger.PublicMessage(err), dl.cfg.Now()) {
		dl.cfg.Log.Warn("configuration refused", "host", d.host.Name, "boot", d.session.ID, "addr", d.Source.String(), "err", err)
		dl.cfg.Recorder.Take(recorder.Note{Event: ev, Do: func(tx inventory.Tx) error {
			switch {
			case isAlarm:
				return dl.cfg.Ledger.OpenIssue(tx, SecretRefused(d.host.ID, ledger.PublicMessage(err), inventory.HintOf(err)))
			case isStranger:
				issue := SessionRefused(d.host.ID)
				issue.Cause = ledger.PublicMessage(err)
				return dl.cfg.Ledger.OpenIssue(tx, issue)
			}
			return nil
		}})
	}
	if isAlarm && !isStranger && dl.cfg.Join != nil { // nobody ends a machine's tokens from another address
		if err := dl.cfg.Join.Revoke(ctx, d.session.ID); err != nil {
			dl.cfg.Log.Warn("join tokens not revoked", "boot", d.session.ID, "err", err)
		}
	}
	return err
}

// inject puts the late values into the documents asked for and packs several into one archive.
func (dl *Deliverer) inject(ctx context.Context, d *delivery) (out pxe.ConfigDocument, err error) {
	lookup := func(ref string) ([]byte, error) {
		if d.IsPeek && strings.HasPrefix(ref, "join://") {
			return []byte("000000.0000000000000000"), nil // as long as one that would be minted
		}
		return dl.lateValue(ctx, d, ref)
	}
	var files []archived
	isStaged := dl.isStaged(d)
	for _, doc := range d.docs {
		if isStaged && doc.IsSecret {
			text, err := dl.firstStage(d, doc)
			if err != nil {
				return out, err
			}
			doc.Text = string(text)
		}
		data, err := machineconfig.Inject([]byte(doc.Text), lookup)
		if err != nil {
			return out, err
		}
		if d.Name != pxe.ConfigArchive {
			return pxe.ConfigDocument{ContentType: cmp.Or(doc.ContentType, "text/plain; charset=utf-8"), Data: data}, nil
		}
		files = append(files, archived{path: doc.Path, data: data})
	}
	return pxe.ConfigDocument{ContentType: "application/octet-stream", Data: archive(files)}, nil
}

// lateValue returns what a reference stands for in this boot.
func (dl *Deliverer) lateValue(ctx context.Context, d *delivery, ref string) ([]byte, error) {
	scheme, rest, _ := strings.Cut(ref, "://")
	switch scheme {
	case "session":
		return dl.sessionValue(d, rest)
	case "secret":
		name, part, hasPart := strings.Cut(rest, "#")
		var value []byte
		var err error
		isOurs := false
		if name == bootstrapSecret {
			value, isOurs, err = dl.bootstrapValue(ctx, d)
		}
		if isOurs || err != nil {
			if err == nil && hasPart {
				value, err = dl.cfg.Renderer.Part(value, part)
			}
			return value, err
		}
		err = dl.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
			value, err = dl.cfg.Configurer.OpenSecret(tx, name)
			return err
		})
		if err == nil && hasPart {
			value, err = dl.cfg.Renderer.Part(value, part)
		}
		return value, err
	case "join":
		name, what, _ := strings.Cut(rest, "/")
		return dl.joinValue(ctx, d, name, what)
	}
	return nil, inventory.Errorf(inventory.Internal, "nothing knows the value of %s", inventory.Clean(ref, 80))
}

func (dl *Deliverer) sessionValue(d *delivery, what string) ([]byte, error) {
	switch name, isConfig := strings.CutPrefix(what, "config/"); {
	case what == "report":
		return []byte(pxe.URL(d.Base, d.session.ID, "report", dl.ReportKey(d.session.ID))), nil
	case what == "base":
		return []byte(strings.TrimRight(d.Base, "/")), nil
	case isConfig:
		return []byte(dl.ConfigURL(d.Base, &d.session, name)), nil
	}
	return nil, inventory.Errorf(inventory.Internal, "a boot session has no %s", inventory.Clean(what, 80))
}

// joinValue mints, or returns again, what a host needs to join a target.
func (dl *Deliverer) joinValue(ctx context.Context, d *delivery, name, what string) ([]byte, error) {
	if dl.cfg.Join == nil {
		return nil, inventory.Errorf(inventory.Unavailable, "this server mints no join tokens")
	}
	var t inventory.JoinTarget
	err := dl.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		t, err = tx.JoinTargets().Find(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	kind, nodeName, _ := strings.Cut(what, "/")
	token, err := dl.cfg.Join.Mint(ctx, t, &d.host, d.session.ID, cmp.Or(nodeName, d.host.Name))
	if err != nil {
		return nil, err
	}
	switch kind {
	case "token":
		return []byte(token), nil
	case "token-id":
		id, _, _ := strings.Cut(token, ".")
		return []byte(id), nil
	}
	return nil, inventory.Errorf(inventory.Internal, "a join target has no %s", inventory.Clean(what, 80))
}
