package apply

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
)

// machine makes a machine or brings it up to date, as its update policy allows.
func (r *run) machine(ctx context.Context, o *Object, mm *v1alpha1.MetalMachine, c *Change) error {
	if v, ok := mm.Annotations[v1alpha1.AnnotationPaused]; ok && v != "false" {
		c.Op, c.Detail = Paused, "remove the annotation "+v1alpha1.AnnotationPaused+" to apply it"
		return nil
	}
	// The server lets machines boot that depend on others or on data: see Keeper.
	options := translate.Options{Owner: o.owner(), ReuseKey: mm.Namespace + "/" + mm.Name, IsHeld: translate.IsNode(mm) || hasData(mm)}
	if hasData(mm) {
		options.BootstrapFrom = translate.DataFrom(mm)
	}
	if translate.IsNode(mm) {
		jt, err := r.targetOf(ctx, mm)
		if err != nil {
			return err
		}
		options.Target = jt
	}
	// A conflict means that the row changed between the read and the write. Each try reads it again, with a Change that has
	// nothing of the try before.
	for try := 1; ; try++ { // the engine writes as well, such as why there is no host yet
		*c = Change{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
		err := r.bring(ctx, o, mm, options, c)
		if !inventory.IsKind(err, inventory.Conflict) || try == maxTries {
			return err
		}
	}
}

// maxTries bounds how often a machine is brought up to date that changes at the same time.
const maxTries = 10

// bring brings a machine once to what its object wants.
func (r *run) bring(ctx context.Context, o *Object, mm *v1alpha1.MetalMachine, options translate.Options, c *Change) error {
	v, err := r.Appliance.FindMachine(ctx, o.owner().String())
	isNew := inventory.IsKind(err, inventory.NotFound)
	if err != nil && !isNew {
		return err
	}
	if !isNew {
		// The stored name counts. Another machine may have had the usual name when this one was made.
		options.Name = v.Machine.Name
		// The Keeper gave it this role. Without this, the update would take the role from the machine that is making its
		// cluster.
		if translate.RoleOf(v.Machine.Config) == machineconfig.Init { // until its cluster is there
			options.Role = machineconfig.Init
		}
	}
	wanted, err := translate.MetalMachine(mm, options)
	if err != nil {
		return err
	}
	// Everything is checked before the first write, so that an error leaves no half of a machine with its secrets.
	if err := wanted.Validate(); err != nil {
		return err
	}
	if err := inventory.CheckName("profile", wanted.Profile); err != nil {
		return err
	}
	if _, err := r.Appliance.FindProfile(ctx, wanted.Profile); err != nil {
		return err
	}
	if wanted.Image != "" {
		if _, err := r.Appliance.FindImage(ctx, wanted.Image); err != nil {
			return err
		}
	}
	// Secrets come before the machine, because the inventory refuses a machine that names a missing one. If this process dies
	// in between, a repeated apply stores them again.
	if err := r.seal(ctx, o, translate.MachineSecrets(mm, o.owner()), c); err != nil {
		return err
	}
	data, err := r.sealData(ctx, o, mm, c)
	if err != nil {
		return err
	}
	if isNew {
		c.Op = Created
		err = r.create(ctx, mm, &wanted, c)
	} else {
		wanted.Name = v.Machine.Name
		err = r.update(ctx, mm, v.Machine, wanted, c)
	}
	if err != nil || data == nil || r.DryRun {
		return err
	}
	// The last argument asks for a check only. Data that the machine cannot boot with are refused while somebody still reads
	// the output. The Keeper hands them over when the machine boots.
	return r.Appliance.GiveBootstrap(ctx, wanted.Name, *data, true)
}

// hasData reports whether a machine boots with data from a Secret. A bootstrap provider, or a person, has written them.
func hasData(mm *v1alpha1.MetalMachine) bool {
	return mm.Spec.Bootstrap != nil && mm.Spec.Bootstrap.DataSecretName != ""
}

// sealData stores the Secret with a machine's bootstrap data, and returns them; nil for those that are stored already.
func (r *run) sealData(ctx context.Context, o *Object, mm *v1alpha1.MetalMachine, c *Change) (*contract.Bootstrap, error) {
	if !hasData(mm) {
		return nil, nil
	}
	const field = "spec.bootstrap.dataSecretName"
	secret, name := mm.Spec.Bootstrap.DataSecretName, translate.DataSecretName(o.owner(), translate.DataFrom(mm))
	from := r.secrets[mm.Namespace+"/"+secret]
	if from == nil {
		has, err := r.HasSecret(ctx, name)
		if err == nil && !has {
			err = inventory.Errorf(inventory.Invalid, "%s: Secret %s/%s is not in the files", field, mm.Namespace, secret).
				WithHint("add the Secret object, with the keys value and format, to the files")
		}
		return nil, err
	}
	if len(from.data["value"]) == 0 {
		return nil, inventory.Errorf(inventory.Invalid, "%s: Secret %s/%s (%s:%d) has no key value", field, mm.Namespace, secret, from.File, from.Line)
	}
	text, err := translate.WriteData(from.data)
	if err != nil {
		return nil, err
	}
	// Read again before it is stored: the Keeper must never meet data that it cannot read.
	data, err := translate.ReadData(text)
	if err != nil {
		return nil, err
	}
	c.Detail = joined(c.Detail, "Secret "+secret+" sealed")
	if r.DryRun {
		return &data, nil
	}
	return &data, r.Appliance.SaveSecret(ctx, name, o.owner().String(), text)
}

// targetOf returns the join target of a machine: from the files, or what the inventory has of one that was applied before.
func (r *run) targetOf(ctx context.Context, mm *v1alpha1.MetalMachine) (*v1alpha1.JoinTarget, error) {
	name := mm.Spec.Bootstrap.Join.TargetRef.Name
	if jt := r.targets[mm.Namespace+"/"+name]; jt != nil {
		return jt, nil
	}
	t, err := r.Appliance.FindTarget(ctx, translate.Name(mm.Namespace, name))
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, inventory.Errorf(inventory.Invalid, "spec.bootstrap.join.targetRef: there is no JoinTarget %s/%s", mm.Namespace, name).
			WithHint("put it into the files, or apply it first")
	}
	if err != nil {
		return nil, err
	}
	// The inventory does not have all fields of a JoinTarget. In two cases the machine needs a field that is missing there.
	// Then the object must be in the files.
	if t.Kubeconfig == "" {
		return nil, inventory.Errorf(inventory.Invalid, "spec.bootstrap.join.targetRef: JoinTarget %s/%s has a static token, whose CA is in its object alone", mm.Namespace, name).
			WithHint("put the JoinTarget into the files")
	}
	if t.IsInit && t.InitializedAt.IsZero() && translate.IsControlPlane(mm) {
		return nil, inventory.Errorf(inventory.Invalid, "spec.bootstrap.join.targetRef: JoinTarget %s/%s is still to be made, and its clusterConfiguration is in its object alone", mm.Namespace, name).
			WithHint("put the JoinTarget into the files")
	}
	return targetObject(mm.Namespace, name, &t), nil
}

func (r *run) create(ctx context.Context, mm *v1alpha1.MetalMachine, wanted *inventory.Machine, c *Change) error {
	if r.DryRun {
		return nil
	}
	m, err := r.Appliance.CreateMachine(ctx, *wanted)
	// The other name has a hash of the owner in it. A second apply finds the machine by its owner, whatever its name.
	if inventory.IsKind(err, inventory.Conflict) { // somebody else's machine has the name
		wanted.Name = translate.NameFor(mm.Namespace, mm.Name, wanted.Owner)
		m, err = r.Appliance.CreateMachine(ctx, *wanted)
	}
	if err != nil {
		return err
	}
	wanted.Name = m.Name
	c.Detail = joined(c.Detail, "machine "+m.Name)
	return nil
}

func (r *run) update(ctx context.Context, mm *v1alpha1.MetalMachine, stored, wanted inventory.Machine, c *Change) error {
	if !stored.DeletedAt.IsZero() {
		return inventory.Errorf(inventory.Conflict, "machine %s is being deleted", stored.Name).WithHint("wait until it is gone: slipway machine show %s", stored.Name)
	}
	// A field that is frozen refuses the whole update. With half of it, the machine would match no version of the file.
	if err := translate.Frozen(stored, wanted); err != nil {
		return err
	}
	isInstalled := stored.HostID != ""
	differs := translate.Changed(stored, wanted)
	isAgain := isInstalled && differs != "" && mm.Spec.UpdatePolicy == v1alpha1.UpdateReprovision
	// Before a machine has a host, everything may change. Afterwards the machine keeps what was installed, unless it is
	// installed again.
	m, isChanged := translate.Apply(stored, wanted, !isInstalled || isAgain)
	if c.Op = Unchanged; isChanged {
		c.Op = Changed
	}
	switch {
	case isAgain:
		c.Detail = joined(c.Detail, "machine "+stored.Name+" is reinstalled")
	case isInstalled && differs != "":
		c.Detail = joined(c.Detail, differs+": it gets that when it is deleted and applied again, or with updatePolicy: Reprovision")
	}
	if r.DryRun || !isChanged {
		return nil
	}
	if _, err := r.Appliance.UpdateMachine(ctx, m); err != nil || !isAgain {
		return err
	}
	// After the update is stored: a crash in between leaves a machine whose next apply finds no difference. It then boots the
	// old system until somebody reinstalls it.
	_, err := r.Appliance.Reinstall(ctx, stored.Name)
	return err
}
