-- What a reason names besides its own subject, as JSON: each reader sees the names that it may know. Nobody can say what older texts
-- name, so that only readers with a role everywhere see them. References of before do not say whose the things were.

-- +goose Up

ALTER TABLE hosts ADD COLUMN refs TEXT NOT NULL DEFAULT '';
ALTER TABLE machines ADD COLUMN refs TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN refs TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN refs TEXT NOT NULL DEFAULT '';
ALTER TABLE bmcs ADD COLUMN refs TEXT NOT NULL DEFAULT '';
-- Nobody changes an entry of the audit: those of before have the default.
ALTER TABLE audit ADD COLUMN refs TEXT NOT NULL DEFAULT '[{"kind":"unknown","name":""}]';

UPDATE hosts SET refs = '[{"kind":"unknown","name":""}]' WHERE state_reason <> '';
UPDATE machines SET refs = '[{"kind":"unknown","name":""}]' WHERE reason <> '' OR hint <> '';
UPDATE operations SET refs = '[{"kind":"unknown","name":""}]' WHERE reason <> '' OR hint <> '';
UPDATE sessions SET refs = '[{"kind":"unknown","name":""}]' WHERE reason <> '';
UPDATE bmcs SET refs = '[{"kind":"unknown","name":""}]' WHERE reason <> '' OR last_check <> '';
UPDATE events SET refs = '[{"kind":"unknown","name":""}]' WHERE refs = '';
UPDATE events SET refs = replace(refs, '"}', '","pools":"-"}') WHERE refs NOT LIKE '%"unknown"%';
UPDATE issues SET refs = '[{"kind":"unknown","name":""}]' WHERE refs = '';
UPDATE issues SET refs = replace(refs, '"}', '","pools":"-"}') WHERE refs NOT LIKE '%"unknown"%';
