package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/hardware/identity"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// armedFor is how long after its last sign a boot may fetch its configuration.
const armedFor = time.Hour

// ec2Folder is where the documents are found as EC2's metadata service lays them out.
const ec2Folder = "ec2/"

// Document returns a document of what the session was given to become, with its late values in place. A reason against it
// is an error for the machine's console and an event. If somebody may be after a secret, it is an issue, too.
func (dl *Deliverer) Document(ctx context.Context, r pxe.ConfigRequest) (pxe.ConfigDocument, error) {
	d := delivery{ConfigRequest: r}
	// One read transaction for all facts. A refusal is noted after it, because a reader cannot write.
	if err := dl.cfg.Store.Read(ctx, func(tx inventory.Tx) error { return dl.findIn(tx, &d) }); err != nil {
		return pxe.ConfigDocument{}, dl.refuse(ctx, &d, err)
	}
	if d.Name == "" {
		names := strings.Join(dl.cfg.Guard.listed(ctx, &d), "\n") + "\n"
		return pxe.ConfigDocument{ContentType: "text/plain; charset=utf-8", Data: []byte(names)}, nil
	}
	// An unknown name gets the list of names, which has no secret in it.
	if len(d.docs) == 0 {
		return pxe.ConfigDocument{}, dl.refuse(ctx, &d, inventory.Errorf(inventory.NotFound, "there is no document %q", inventory.Clean(r.Name, 80)).
			WithHint("there are: %s", strings.ReplaceAll(d.names(), "\n", ", ")))
	}
	if err := d.readable(); err != nil {
		return pxe.ConfigDocument{}, dl.refuse(ctx, &d, err)
	}
	if d.hasSecret() && !dl.cfg.Confidential.stages(&d) {
		if err := dl.cfg.Guard.allowed(ctx, &d); err != nil {
			return pxe.ConfigDocument{}, dl.refuse(ctx, &d, err)
		}
	}
	out, err := dl.cfg.Values.inject(ctx, &d)
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
	// The step never goes back: a machine may fetch its configuration again after a later sign.
	if session.StepIndex(inventory.EventConfigSent) > session.StepIndex(s.Step) {
		s.Step = inventory.EventConfigSent
	}
	dl.cfg.Sessions.Put(s)
	return s
}

// findIn reads what a request is about: its session, which must be a running boot of an image with a configuration, its
// host and the documents. Whoever is not the machine of that boot learns nothing but that.
func (dl *Deliverer) findIn(tx inventory.Tx, d *delivery) (err error) {
	if d.session, err = dl.cfg.Admission.sessionOf(tx, d.Session, d.Source); err != nil {
		return err
	}
	if d.host, err = tx.FindHost(d.session.HostID); err != nil {
		return fmt.Errorf("read host of boot session %s: %w", d.Session, err)
	}
	// No key counts here. The key for reports is in one document, and must not open the others.
	way, refusal := dl.cfg.Admission.admit(tx, &d.session, d.Source, "")
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
		return inventory.Errorf(inventory.Forbidden, "this boot was decided as %s: %s", d.session.Boot, d.session.Reason).
			Naming(d.session.Refs...)
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
	// The documents for our agent also need its key, because another machine can take an address over.
	if d.session.Boot == string(pxe.BootAgent) && !dl.cfg.Admission.isDocumentKey(d.session.ID, d.Key) {
		err := inventory.Errorf(inventory.Forbidden, "the documents of this boot are for our agent, and the request came without its key").
			WithHint("the agent needs their address; boot the machine again")
		err.Err = errStranger
		return err
	}
	return nil
}

// Confide finds the way on which a rendering with secrets reaches a machine unread, or says that there is none. A loader
// that speaks HTTPS fetches the initrd itself, if it was built to trust our CA. A first stage without secrets can tell
// Ignition which authority to trust, and where the rest is.
func (dl *Deliverer) Confide(p *pxe.Plan, r *configuration.Rendered, c pxe.Client, base string) {
	if dl.cfg.Confidential == nil || !r.HasSecret {
		return
	}
	switch {
	case p.Config.HasInitrd && dl.cfg.Sessions.SpeaksTLS(c.MAC):
		p.Config.Base = dl.cfg.Confidential.base(base)
	case r.Format == "ignition":
	default:
		p.Problem = inventory.Errorf(inventory.Conflict, "this site sends secrets over TLS only, and the boot loader of this machine does not speak it").
			WithHint("give it an iPXE with HTTPS that trusts our CA, see docs/secrets.md; or take the secrets out of profile %s", r.Profile)
	}
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
				issue := SecretRefused(d.host.ID, ledger.PublicMessage(err), inventory.HintOf(err))
				issue.Refs = ev.Refs
				return dl.cfg.Ledger.OpenIssue(tx, issue)
			case isStranger:
				issue := SessionRefused(d.host.ID)
				issue.Cause, issue.Refs = ledger.PublicMessage(err), ev.Refs
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
