package sqlstore

import (
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	findArtefactSQL   = `SELECT digest, size_bytes, source, created_at FROM artefacts WHERE digest = $1`
	listArtefactsSQL  = `SELECT digest, size_bytes, source, created_at FROM artefacts WHERE digest > $1 ORDER BY digest LIMIT $2`
	saveArtefactSQL   = `INSERT INTO artefacts (digest, size_bytes, source, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (digest) DO NOTHING`
	artefactUserSQL   = `SELECT image FROM image_files WHERE digest = $1 ORDER BY image LIMIT 1`
	deleteArtefactSQL = `DELETE FROM artefacts WHERE digest = $1`

	imageUserSQL    = `SELECT name FROM profiles WHERE image = $1 ORDER BY name LIMIT 1`
	imageMachineSQL = `SELECT name FROM machines WHERE image = $1 ORDER BY name LIMIT 1`
	hasImageSQL     = `SELECT name FROM images WHERE name = $1`

	imageFilesSQL       = `SELECT role, name, digest FROM image_files WHERE image = $1 ORDER BY position`
	insertImageFileSQL  = `INSERT INTO image_files (image, position, role, name, digest) VALUES ($1, $2, $3, $4, $5)`
	deleteImageFilesSQL = `DELETE FROM image_files WHERE image = $1`
)

func readArtefact(s database.Scan) (a inventory.Artefact, err error) {
	err = s(&a.Digest, &a.SizeBytes, &a.Source, column.Time(&a.CreatedAt))
	return a, err
}

// FindArtefact implements inventory.ImageTx.
func (t imageTx) FindArtefact(d inventory.Digest) (inventory.Artefact, error) {
	return find(t.tx, readArtefact, "artefact", string(d), findArtefactSQL, string(d))
}

// ListArtefacts implements inventory.ImageTx.
func (t imageTx) ListArtefacts(p inventory.Page) ([]inventory.Artefact, error) {
	return list(t.tx, readArtefact, listArtefactsSQL, p.After, limit(p.Limit))
}

// SaveArtefact implements inventory.ImageTx. The first source and time of a digest stay.
func (t imageTx) SaveArtefact(a inventory.Artefact) error {
	return t.Later(nil, saveArtefactSQL, string(a.Digest), a.SizeBytes, a.Source, column.MS(a.CreatedAt))
}

// DeleteArtefact implements inventory.ImageTx.
func (t imageTx) DeleteArtefact(d inventory.Digest) error {
	if err := t.unused("artefact", string(d), "image", artefactUserSQL); err != nil {
		return err
	}
	n, err := t.Write(deleteArtefactSQL, string(d))
	return changed(n, err, "artefact", string(d))
}

// unused refuses to delete what something else refers to, which the query finds.
func (t *tx) unused(noun, key, userNoun, userQuery string) error {
	var user string
	found, err := t.Row([]any{&user}, userQuery, key)
	if err != nil || !found {
		return err
	}
	var refs []inventory.Ref
	if r, is := inventory.RefTo(userNoun, user); is {
		refs = append(refs, r)
	}
	return inventory.Errorf(inventory.Conflict, "%s %s is used by %s %s", noun, key, userNoun, user).
		WithHint("change or delete %s %s first", userNoun, user).Naming(refs...)
}

var imageTable = newTable(noun.Images, table[inventory.Image]{
	fixed: columns(`name`),
	edited: columns(`os release arch kernel_args configs config_args memory_mib is_installer disk_format disk_bytes remote seed_label
cpu_level`),
	cells: func(i *inventory.Image) []column.Column {
		return []column.Column{
			column.Text(&i.Name), column.Text(&i.OS), column.Text(&i.Release), column.Text(&i.Arch),
			column.JSON(&i.KernelArgs), column.JSON(&i.Configs), column.JSON(&i.ConfigArgs),
			column.Number(&i.MemoryMiB),
			column.Bool(&i.IsInstaller),
			column.Text(&i.DiskFormat), column.Number(&i.DiskBytes), column.Text(&i.Remote), column.Text(&i.SeedLabel),
			column.Text(&i.CPULevel),
		}
	},
})

// images have their files in a table of their own. Those that boots ask for are kept.
type images struct{ records[inventory.Image] }

// Images implements inventory.RecordTx.
func (t recordTx) Images() inventory.Records[inventory.Image] {
	return images{records[inventory.Image]{
		table: imageTable, tx: t.tx,
		may: func(i *inventory.Image, _ bool) error { return imageTx(t).hasArtefacts(i) },
		leave: func(name string) error {
			if err := t.unused("image", name, "profile", imageUserSQL); err != nil {
				return err
			}
			return t.unused("image", name, "machine", imageMachineSQL)
		},
	}}
}

// Find implements inventory.Records.
func (x images) Find(name string) (inventory.Image, error) {
	return setting(x.tx, "image/"+name, ownImage, func() (inventory.Image, error) {
		i, err := x.records.Find(name)
		if err == nil {
			i.Files, err = x.files(name)
		}
		return i, err
	})
}

func (x images) files(image string) ([]inventory.ImageArtefact, error) {
	files := []inventory.ImageArtefact{} // a list in JSON, also for an image that agents fetch themselves
	err := x.tx.Each(func(s database.Scan) error {
		var f inventory.ImageArtefact
		err := s(&f.Role, &f.Name, &f.Digest)
		files = append(files, f)
		return err
	}, imageFilesSQL, image)
	return files, err
}

// List implements inventory.Records. There are few images, so their files are read one by one.
func (x images) List(p inventory.Page) ([]inventory.Image, error) {
	all, err := x.records.List(p)
	for i := range all {
		if err == nil {
			all[i].Files, err = x.files(all[i].Name)
		}
	}
	return all, err
}

// Create implements inventory.Records.
func (x images) Create(i *inventory.Image, now time.Time) error {
	if err := x.records.Create(i, now); err != nil {
		return err
	}
	return x.insertFiles(i)
}

// Update implements inventory.Records.
func (x images) Update(i *inventory.Image, now time.Time) error {
	if err := x.records.Update(i, now); err != nil {
		return err
	}
	has, err := x.files(i.Name)
	if err != nil || slices.Equal(has, i.Files) {
		return err
	}
	if err := x.tx.Later(nil, deleteImageFilesSQL, i.Name); err != nil {
		return err
	}
	return x.insertFiles(i)
}

func (x images) insertFiles(i *inventory.Image) error {
	for at, f := range i.Files {
		if err := x.tx.Later(nil, insertImageFileSQL, i.Name, at, string(f.Role), f.Name, string(f.Digest)); err != nil {
			return err
		}
	}
	return nil
}

func (t imageTx) hasArtefacts(i *inventory.Image) error {
	for _, f := range i.Files {
		_, err := t.FindArtefact(f.Digest)
		if inventory.IsKind(err, inventory.NotFound) {
			return inventory.Errorf(inventory.Invalid, "image %s: the artefact of %s (%s) is not stored", i.Name, f.Name, f.Digest).
				WithHint("import it first: slipway image import")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	profileParentSQL   = `SELECT COALESCE(extends, '') FROM profiles WHERE name = $1`
	profileUserSQL     = `SELECT name FROM hosts WHERE profile = $1 ORDER BY name LIMIT 1`
	profileMachineSQL  = `SELECT name FROM machines WHERE profile = $1 ORDER BY name LIMIT 1`
	profileExtenderSQL = `SELECT name FROM profiles WHERE extends = $1 ORDER BY name LIMIT 1`
)

var profileTable = newTable(noun.Profiles, table[inventory.Profile]{
	orNull: columns(`extends`),
	fixed:  columns(`name`),
	edited: columns(`image selector priority kernel_args parameters extends config document format accepts isolated revision saved_by
saved_by_admin`),
	cells: func(p *inventory.Profile) []column.Column {
		return []column.Column{
			column.Text(&p.Name), column.Text(&p.Image), column.Text(&p.Selector),
			column.Number(&p.Priority),
			column.JSON(&p.KernelArgs), column.JSON(&p.Parameters), column.Text(&p.Extends), column.Text(&p.Config),
			column.JSON(&p.Document),
			column.Text(&p.Format), column.JSON(&p.Accepts),
			column.Bool(&p.Isolated),
			column.Number(&p.Revision), column.Text(&p.SavedBy),
			column.Bool(&p.SavedByAdmin),
		}
	},
})

// profiles keep revisions. Those that boots ask for are kept.
type profiles struct{ records[inventory.Profile] }

// Profiles implements inventory.RecordTx.
func (t recordTx) Profiles() inventory.Records[inventory.Profile] {
	return profiles{records[inventory.Profile]{table: profileTable, tx: t.tx, may: t.mayBeProfile, leave: func(name string) error {
		if err := t.unused("profile", name, "host", profileUserSQL); err != nil {
			return err
		}
		if err := t.unused("profile", name, "machine", profileMachineSQL); err != nil {
			return err
		}
		return t.unused("profile", name, "profile", profileExtenderSQL)
	}}}
}

// Find implements inventory.Records.
func (x profiles) Find(name string) (inventory.Profile, error) {
	return setting(x.tx, "profile/"+name, ownProfile, func() (inventory.Profile, error) { return x.records.Find(name) })
}

// List implements inventory.Records.
func (x profiles) List(p inventory.Page) ([]inventory.Profile, error) {
	if p != (inventory.Page{}) {
		return x.records.List(p)
	}
	return setting(x.tx, "profiles", ownProfiles, func() ([]inventory.Profile, error) { return x.records.List(p) })
}

// Update implements inventory.Records.
func (x profiles) Update(p *inventory.Profile, now time.Time) error {
	old, err := x.Find(p.Name)
	if err != nil {
		return err
	}
	return x.records.revise(p, old.Version, old.CreatedAt, now)
}

// mayBeProfile refuses an image or a parent that is not stored, and keeps the content as a revision.
func (t recordTx) mayBeProfile(p *inventory.Profile, _ bool) error {
	if found, err := imageTable.has(t.tx, p.Image); err != nil {
		return err
	} else if !found {
		return inventory.Errorf(inventory.Invalid, "profile %s names image %s, which does not exist", p.Name, p.Image).
			WithHint("list them with: slipway image list")
	}
	if err := t.checkParents(p); err != nil {
		return err
	}
	return t.configs().reviseProfile(p)
}

// checkParents refuses a profile that extends one that is not stored, or that comes back to itself.
func (t recordTx) checkParents(p *inventory.Profile) error {
	chain := []string{p.Name}
	for parent := p.Extends; parent != ""; {
		if slices.Contains(chain, parent) {
			return inventory.Errorf(inventory.Invalid, "profiles extend each other in a circle: %s", strings.Join(append(chain, parent), " extends ")).
				WithHint("take extends out of one of them")
		}
		chain = append(chain, parent)
		var next string
		found, err := t.Row([]any{&next}, profileParentSQL, parent)
		if err != nil {
			return err
		}
		if !found {
			return inventory.Errorf(inventory.Invalid, "profile %s extends profile %s, which does not exist", p.Name, parent).
				WithHint("list them with: slipway profile list")
		}
		parent = next
	}
	return nil
}
