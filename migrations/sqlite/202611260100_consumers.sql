-- Who may name a secret or a join target, and who saved what names them. What an admin saved last by the API counts as an
-- admin's word, as far as the audit knows; everything else has to be saved anew by one, or its secrets get consumers.

-- +goose Up

ALTER TABLE secrets ADD COLUMN consumers TEXT NOT NULL DEFAULT '';
ALTER TABLE join_targets ADD COLUMN consumers TEXT NOT NULL DEFAULT '';
ALTER TABLE profiles ADD COLUMN saved_by TEXT NOT NULL DEFAULT '';
ALTER TABLE profiles ADD COLUMN saved_by_admin INTEGER NOT NULL DEFAULT 0;
ALTER TABLE layers ADD COLUMN saved_by TEXT NOT NULL DEFAULT '';
ALTER TABLE layers ADD COLUMN saved_by_admin INTEGER NOT NULL DEFAULT 0;
ALTER TABLE machines ADD COLUMN saved_by TEXT NOT NULL DEFAULT '';
ALTER TABLE machines ADD COLUMN saved_by_admin INTEGER NOT NULL DEFAULT 0;
ALTER TABLE renderings ADD COLUMN uses TEXT NOT NULL DEFAULT '';

UPDATE profiles SET saved_by_admin = 1 WHERE 'admin' = (SELECT role FROM audit WHERE noun = 'profile' AND audit.name = profiles.name
  AND change IN ('create', 'update') AND status < 400 ORDER BY id DESC LIMIT 1);
UPDATE layers SET saved_by_admin = 1 WHERE 'admin' = (SELECT role FROM audit WHERE noun = 'layer' AND audit.name = layers.key
  AND change IN ('create', 'update') AND status < 400 ORDER BY id DESC LIMIT 1);
