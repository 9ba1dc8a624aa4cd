-- +goose Up
CREATE TABLE products (
    sku   VARCHAR(40) NOT NULL PRIMARY KEY,
    price BIGINT      NOT NULL -- in cents
);

INSERT INTO products (sku, price) VALUES ('tea', 450), ('cup', 1200), ('pot', 3900);

-- +goose Down
DROP TABLE products;
