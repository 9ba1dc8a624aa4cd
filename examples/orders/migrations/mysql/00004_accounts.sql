-- +goose Up
CREATE TABLE accounts (
    name   VARCHAR(40) NOT NULL PRIMARY KEY,
    secret VARCHAR(64) NOT NULL UNIQUE -- its SHA-256 in hexadecimal
);

-- ada-secret and bob-secret
INSERT INTO accounts (name, secret) VALUES
    ('ada', 'cb3ac4f9f4ba2da6f063a94debb6009ec2ee2abcf28f90cd97fdb92fdc44d736'),
    ('bob', '9f03ef1533a68d2f506f81ef463c1183a82a6bd40e45613f36e6fe1889cf1b99');

-- Orders that were made before there were accounts belong to none.
ALTER TABLE orders ADD COLUMN account VARCHAR(40) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE orders DROP COLUMN account;
DROP TABLE accounts;
