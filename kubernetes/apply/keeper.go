package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/machineconfig"
)

// Planes asks the clusters of join targets how their control planes are.
type Planes interface {
	ControlPlane(ctx context.Context, target string) (node.ControlPlane, error)
}

// Secrets opens what is stored under a name.
type Secrets interface {
	Open(ctx context.Context, name string) ([]byte, error)
}

// KeeperConfig is what a Keeper needs; Now, Log and Every have defaults.
type KeeperConfig struct {
	Appliance contract.Appliance
	Planes    Planes
	Secrets   Secrets
	Now       func() time.Time
	Log       *slog.Logger
	// Every is how often the keeper asks a cluster that is just being made, or that keeps machines waiting; 5 s when 0.
	Every time.Duration
}

// Keeper looks after machines without Kubernetes. It lets machines that become nodes boot in turn, names the control plane
// that makes the cluster, and notices when the cluster exists. It also hands over bootstrap data from Slipway's own
// secrets. It allocates and boots nothing. It keeps nothing that matters: it reads all from the appliance at each look.
type Keeper struct {
	cfg  KeeperConfig
	wake chan struct{}

	mu    sync.Mutex
	asked map[string]bool // machines whose boot waits for their bootstrap data
}

// NewKeeper returns a Keeper.
func NewKeeper(cfg KeeperConfig) *Keeper {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Every = cmp.Or(cfg.Every, 5*time.Second)
	return &Keeper{cfg: cfg, wake: make(chan struct{}, 1), asked: map[string]bool{}}
}

// isConflict reports whether somebody else has changed a thing meanwhile: its event leads to another look.
// NotFound is one as well: somebody has deleted the thing.
func isConflict(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && (e.Kind == inventory.Conflict || e.Kind == inventory.NotFound)
}

// let gives a machine its role in the cluster, and lets it boot.
func (k *Keeper) let(ctx context.Context, v *contract.View, role machineconfig.Role) error {
	// The role is stored before the boot. A crash in between leaves a machine with its role that still waits; the next look
	// finds the same verdict for it.
	if err := k.role(ctx, v, role); err != nil {
		return err
	}
	_, err := k.cfg.Appliance.AckHook(ctx, v.Machine.Name, inventory.PreBoot, translate.HoldOwner)
	if err != nil && !isConflict(err) {
		return fmt.Errorf("let %s boot: %w", v.Machine.Name, err)
	}
	return nil
}

// hold says on a machine, its host and its operation why it may not boot yet. One that boots already has no such place.
func (k *Keeper) hold(ctx context.Context, v *contract.View, why string) error {
	if !translate.IsHeld(&v.Machine) {
		k.cfg.Log.Warn("its boot waits", "machine", v.Machine.Name, "reason", why)
		return nil
	}
	if err := translate.Hold(ctx, k.cfg.Appliance, &v.Machine, why); !isConflict(err) {
		return err
	}
	return nil
}

// role gives a machine another role in its cluster; "" leaves the one that it has.
func (k *Keeper) role(ctx context.Context, v *contract.View, role machineconfig.Role) error {
	if role == "" || translate.RoleOf(v.Machine.Config) == role {
		return nil
	}
	m := v.Machine
	var err error
	if m.Config, err = translate.WithRole(m.Config, role); err != nil {
		return fmt.Errorf("write the role of %s: %w", m.Name, err)
	}
	if v.Machine, err = k.cfg.Appliance.UpdateMachine(ctx, m); err != nil {
		return fmt.Errorf("write the role of %s: %w", m.Name, err)
	}
	return nil
}

// lend looks whether a machine could boot with its bootstrap data, lets it boot then, and hands them over when its boot
// asks for them.
func (k *Keeper) lend(ctx context.Context, v *contract.View) error {
	m := &v.Machine
	k.mu.Lock()
	isAsked := k.asked[m.Name]
	k.mu.Unlock()
	isHeld := translate.IsHeld(m) && m.HostID != ""
	// Opening and checking the data costs a read and a decryption; most machines need neither.
	if !isAsked && !isHeld {
		return nil
	}
	owner, err := contract.ParseOwner(m.Owner)
	if err != nil {
		return err
	}
	text, err := k.cfg.Secrets.Open(ctx, translate.DataSecretName(owner, m.BootstrapFrom))
	if isConflict(err) {
		return k.hold(ctx, v, "its bootstrap data are not stored: apply the Secret that it names again")
	}
	if err != nil {
		return fmt.Errorf("open the bootstrap data of %s: %w", m.Name, err)
	}
	data, err := translate.ReadData(text)
	if err != nil {
		return fmt.Errorf("bootstrap data of %s: %w", m.Name, err)
	}
	// A dry run where nobody has asked yet: it only says whether the machine could boot with the data.
	err = k.cfg.Appliance.GiveBootstrap(ctx, m.Name, data, !isAsked)
	if reason := contract.BootstrapReason(err); reason != "" {
		err = k.hold(ctx, v, reason+": "+err.Error())
	} else if err == nil && isHeld {
		err = k.let(ctx, v, "")
	}
	if err == nil && isAsked {
		k.mu.Lock()
		// Not before it has worked: after an error the next round tries again.
		delete(k.asked, m.Name)
		k.mu.Unlock()
	}
	return err
}
