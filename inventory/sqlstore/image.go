package sqlstore

import (
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	findArtefactSQL   = `SELECT digest, size_bytes, source, created_at FROM artefacts WHERE digest = $1`
	listArtefactsSQL  = `SELECT digest, size_bytes, source, created_at FROM artefacts WHERE digest > $1 ORDER BY digest LIMIT $2`
	saveArtefactSQL   = `INSERT INTO artefacts (digest, size_bytes, source, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (digest) DO NOTHING`
	artefactUserSQL   = `SELECT image FROM image_files WHERE digest = $1 ORDER BY image LIMIT 1`
	deleteArtefactSQL = `DELETE FROM artefacts WHERE digest = $1`

	imageColumns = `name, os, release, arch, kernel_args, configs, config_args, memory_mib, is_installer, disk_format,
disk_bytes, remote, seed_label, cpu_level, created_at, updated_at, version`

	findImageSQL    = `SELECT ` + imageColumns + ` FROM images WHERE name = $1`
	listImagesSQL   = `SELECT ` + imageColumns + ` FROM images WHERE name > $1 ORDER BY name LIMIT $2`
	imageVersionSQL = `SELECT version FROM images WHERE name = $1`
	imageUserSQL    = `SELECT name FROM profiles WHERE image = $1 ORDER BY name LIMIT 1`
	imageMachineSQL = `SELECT name FROM machines WHERE image = $1 ORDER BY name LIMIT 1`
	hasImageSQL     = `SELECT name FROM images WHERE name = $1`
	insertImageSQL  = `INSERT INTO images (name, os, release, arch, kernel_args, configs, config_args, memory_mib, is_installer,
disk_format, disk_bytes, remote, seed_label, cpu_level, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 1)`
	updateImageSQL = `UPDATE images SET os = $1, release = $2, arch = $3, kernel_args = $4, configs = $5,
config_args = $6, memory_mib = $7, is_installer = $8, disk_format = $9, disk_bytes = $10, remote = $11, seed_label = $12,
cpu_level = $13, updated_at = $14, version = version + 1 WHERE name = $15 AND version = $16`
	deleteImageSQL = `DELETE FROM images WHERE name = $1`

	imageFilesSQL       = `SELECT role, name, digest FROM image_files WHERE image = $1 ORDER BY position`
	insertImageFileSQL  = `INSERT INTO image_files (image, position, role, name, digest) VALUES ($1, $2, $3, $4, $5)`
	deleteImageFilesSQL = `DELETE FROM image_files WHERE image = $1`
)

func readArtefact(s scan) (a inventory.Artefact, err error) {
	err = s(&a.Digest, &a.SizeBytes, &a.Source, timeColumn(&a.CreatedAt))
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
	_, err := t.write(saveArtefactSQL, string(a.Digest), a.SizeBytes, a.Source, ms(a.CreatedAt))
	return err
}

// DeleteArtefact implements inventory.ImageTx.
func (t imageTx) DeleteArtefact(d inventory.Digest) error {
	if err := t.unused("artefact", string(d), "image", artefactUserSQL); err != nil {
		return err
	}
	n, err := t.write(deleteArtefactSQL, string(d))
	return changed(n, err, "artefact", string(d))
}

// unused refuses to delete what something else refers to, which the query finds.
func (t *tx) unused(noun, key, userNoun, userQuery string) error {
	var user string
	found, err := t.row([]any{&user}, userQuery, key)
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

func readImage(s scan) (i inventory.Image, err error) {
	err = s(&i.Name, &i.OS, &i.Release, &i.Arch, jsonColumn(&i.KernelArgs), jsonColumn(&i.Configs), jsonColumn(&i.ConfigArgs),
		&i.MemoryMiB, &i.IsInstaller, &i.DiskFormat, &i.DiskBytes, &i.Remote, &i.SeedLabel, &i.CPULevel, timeColumn(&i.CreatedAt), timeColumn(&i.UpdatedAt), &i.Version)
	return i, err
}

// FindImage implements inventory.ImageTx.
func (t imageTx) FindImage(name string) (inventory.Image, error) {
	return setting(t.tx, "image/"+name, ownImage, func() (inventory.Image, error) {
		i, err := find(t.tx, readImage, "image", name, findImageSQL, name)
		if err != nil {
			return inventory.Image{}, err
		}
		i.Files, err = t.imageFiles(name)
		return i, err
	})
}

func (t imageTx) imageFiles(image string) ([]inventory.ImageArtefact, error) {
	return list(t.tx, func(s scan) (f inventory.ImageArtefact, err error) {
		err = s(&f.Role, &f.Name, &f.Digest)
		return f, err
	}, imageFilesSQL, image)
}

// ListImages implements inventory.ImageTx. There are few images, so their files are read one by one.
func (t imageTx) ListImages(p inventory.Page) ([]inventory.Image, error) {
	images, err := list(t.tx, readImage, listImagesSQL, p.After, limit(p.Limit))
	if err != nil {
		return nil, err
	}
	for i := range images {
		if images[i].Files, err = t.imageFiles(images[i].Name); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// CreateImage implements inventory.ImageTx.
func (t imageTx) CreateImage(i *inventory.Image, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, imageVersionSQL, i.Name); err != nil {
		return err
	} else if found {
		return taken("image", i.Name)
	}
	if err := t.hasArtefacts(i); err != nil {
		return err
	}
	args, err := imageArgs(i)
	if err != nil {
		return err
	}
	now = stamp(now)
	args = append([]any{i.Name}, args...)
	if _, err := t.write(insertImageSQL, append(args, ms(now), ms(now))...); err != nil {
		return err
	}
	if err := t.insertImageFiles(i); err != nil {
		return err
	}
	i.CreatedAt, i.UpdatedAt, i.Version = now, now, 1
	return nil
}

// UpdateImage implements inventory.ImageTx.
func (t imageTx) UpdateImage(i *inventory.Image, now time.Time) error {
	if err := t.hasArtefacts(i); err != nil {
		return err
	}
	args, err := imageArgs(i)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateImageSQL, append(args, ms(now), i.Name, i.Version)...)
	if err := t.updated(n, err, "image", i.Name, i.Version, imageVersionSQL, i.Name); err != nil {
		return err
	}
	has, err := t.imageFiles(i.Name)
	if err != nil {
		return err
	}
	if !slices.Equal(has, i.Files) {
		if _, err := t.write(deleteImageFilesSQL, i.Name); err != nil {
			return err
		}
		if err := t.insertImageFiles(i); err != nil {
			return err
		}
	}
	i.UpdatedAt = now
	i.Version++
	return nil
}

// imageArgs returns the arguments that insert and update share.
func imageArgs(i *inventory.Image) ([]any, error) {
	args := []any{i.OS, i.Release, string(i.Arch)}
	for _, list := range []any{i.KernelArgs, i.Configs, i.ConfigArgs} {
		text, err := jsonText(list)
		if err != nil {
			return nil, err
		}
		args = append(args, text)
	}
	return append(args, i.MemoryMiB, bit(i.IsInstaller), i.DiskFormat, i.DiskBytes, i.Remote, i.SeedLabel, i.CPULevel), nil
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

func (t imageTx) insertImageFiles(i *inventory.Image) error {
	for at, f := range i.Files {
		if _, err := t.write(insertImageFileSQL, i.Name, at, string(f.Role), f.Name, string(f.Digest)); err != nil {
			return err
		}
	}
	return nil
}

// DeleteImage implements inventory.ImageTx.
func (t imageTx) DeleteImage(name string) error {
	if err := t.unused("image", name, "profile", imageUserSQL); err != nil {
		return err
	}
	if err := t.unused("image", name, "machine", imageMachineSQL); err != nil {
		return err
	}
	n, err := t.write(deleteImageSQL, name)
	return changed(n, err, "image", name)
}

const (
	profileColumns = `name, image, selector, priority, kernel_args, parameters, COALESCE(extends, ''), config, document,
format, accepts, isolated, revision, saved_by, saved_by_admin, created_at, updated_at, version`

	findProfileSQL     = `SELECT ` + profileColumns + ` FROM profiles WHERE name = $1`
	listProfilesSQL    = `SELECT ` + profileColumns + ` FROM profiles WHERE name > $1 ORDER BY name LIMIT $2`
	profileVersionSQL  = `SELECT version FROM profiles WHERE name = $1`
	profileParentSQL   = `SELECT COALESCE(extends, '') FROM profiles WHERE name = $1`
	profileUserSQL     = `SELECT name FROM hosts WHERE profile = $1 ORDER BY name LIMIT 1`
	profileMachineSQL  = `SELECT name FROM machines WHERE profile = $1 ORDER BY name LIMIT 1`
	profileExtenderSQL = `SELECT name FROM profiles WHERE extends = $1 ORDER BY name LIMIT 1`
	insertProfileSQL   = `INSERT INTO profiles (name, image, selector, priority, kernel_args, parameters, extends, config, document,
format, accepts, isolated, revision, saved_by, saved_by_admin, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, NULLIF($7, ''), $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 1)`
	updateProfileSQL = `UPDATE profiles SET image = $1, selector = $2, priority = $3, kernel_args = $4, parameters = $5,
extends = NULLIF($6, ''), config = $7, document = $8, format = $9, accepts = $10, isolated = $11, revision = $12,
saved_by = $13, saved_by_admin = $14, updated_at = $15, version = version + 1 WHERE name = $16 AND version = $17`
	deleteProfileSQL = `DELETE FROM profiles WHERE name = $1`
)

func readProfile(s scan) (p inventory.Profile, err error) {
	err = s(&p.Name, &p.Image, &p.Selector, &p.Priority, jsonColumn(&p.KernelArgs), jsonColumn(&p.Parameters), &p.Extends,
		&p.Config, jsonColumn(&p.Document), &p.Format, jsonColumn(&p.Accepts), &p.Isolated, &p.Revision,
		&p.SavedBy, &p.SavedByAdmin, timeColumn(&p.CreatedAt), timeColumn(&p.UpdatedAt), &p.Version)
	return p, err
}

// FindProfile implements inventory.ImageTx.
func (t imageTx) FindProfile(name string) (inventory.Profile, error) {
	return setting(t.tx, "profile/"+name, ownProfile, func() (inventory.Profile, error) {
		return find(t.tx, readProfile, "profile", name, findProfileSQL, name)
	})
}

// ListProfiles implements inventory.ImageTx.
func (t imageTx) ListProfiles(p inventory.Page) ([]inventory.Profile, error) {
	read := func() ([]inventory.Profile, error) {
		return list(t.tx, readProfile, listProfilesSQL, p.After, limit(p.Limit))
	}
	if p != (inventory.Page{}) {
		return read()
	}
	return setting(t.tx, "profiles", ownProfiles, read)
}

// CreateProfile implements inventory.ImageTx.
func (t imageTx) CreateProfile(p *inventory.Profile, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, profileVersionSQL, p.Name); err != nil {
		return err
	} else if found {
		return taken("profile", p.Name)
	}
	next := *p
	now = stamp(now)
	next.CreatedAt, next.UpdatedAt, next.Version = now, now, 1
	args, err := t.profileArgs(&next)
	if err != nil {
		return err
	}
	args = append([]any{p.Name}, args...)
	if _, err := t.write(insertProfileSQL, append(args, ms(now), ms(now))...); err != nil {
		return err
	}
	*p = next
	return nil
}

// UpdateProfile implements inventory.ImageTx.
func (t imageTx) UpdateProfile(p *inventory.Profile, now time.Time) error {
	old, err := t.FindProfile(p.Name)
	if err != nil {
		return err
	}
	if old.Version != p.Version { // before a revision is kept
		return t.updated(0, nil, "profile", p.Name, p.Version, profileVersionSQL, p.Name)
	}
	next := *p
	now = stamp(now)
	next.CreatedAt, next.UpdatedAt, next.Version = old.CreatedAt, now, p.Version+1
	args, err := t.profileArgs(&next)
	if err != nil {
		return err
	}
	n, err := t.write(updateProfileSQL, append(args, ms(now), p.Name, p.Version)...)
	if err := t.updated(n, err, "profile", p.Name, p.Version, profileVersionSQL, p.Name); err != nil {
		return err
	}
	*p = next
	return nil
}

// profileArgs refuses an image or a parent that is not stored, keeps p's content as a revision, and returns the
// arguments that insert and update share.
func (t imageTx) profileArgs(p *inventory.Profile) ([]any, error) {
	var version int64
	if found, err := t.row([]any{&version}, imageVersionSQL, p.Image); err != nil {
		return nil, err
	} else if !found {
		return nil, inventory.Errorf(inventory.Invalid, "profile %s names image %s, which does not exist", p.Name, p.Image).
			WithHint("list them with: slipway image list")
	}
	if err := t.checkParents(p); err != nil {
		return nil, err
	}
	if err := t.configs().reviseProfile(p); err != nil {
		return nil, err
	}
	args := []any{p.Image, p.Selector, p.Priority}
	var texts []any
	for _, v := range []any{p.KernelArgs, p.Parameters, p.Document, p.Accepts} {
		text, err := jsonText(v)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return append(args, texts[0], texts[1], p.Extends, p.Config, texts[2], p.Format, texts[3], bit(p.Isolated), p.Revision, p.SavedBy, bit(p.SavedByAdmin)), nil
}

// checkParents refuses a profile that extends one that is not stored, or that comes back to itself.
func (t imageTx) checkParents(p *inventory.Profile) error {
	chain := []string{p.Name}
	for parent := p.Extends; parent != ""; {
		if slices.Contains(chain, parent) {
			return inventory.Errorf(inventory.Invalid, "profiles extend each other in a circle: %s", strings.Join(append(chain, parent), " extends ")).
				WithHint("take extends out of one of them")
		}
		chain = append(chain, parent)
		var next string
		found, err := t.row([]any{&next}, profileParentSQL, parent)
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

// DeleteProfile implements inventory.ImageTx.
func (t imageTx) DeleteProfile(name string) error {
	if err := t.unused("profile", name, "host", profileUserSQL); err != nil {
		return err
	}
	if err := t.unused("profile", name, "machine", profileMachineSQL); err != nil {
		return err
	}
	if err := t.unused("profile", name, "profile", profileExtenderSQL); err != nil {
		return err
	}
	n, err := t.write(deleteProfileSQL, name)
	return changed(n, err, "profile", name)
}
