-- +goose Up
CREATE TABLE orders (
    id       VARCHAR(40)  NOT NULL PRIMARY KEY,
    customer VARCHAR(100) NOT NULL,
    total    BIGINT       NOT NULL -- in cents
);

CREATE TABLE order_lines (
    order_id VARCHAR(40) NOT NULL REFERENCES orders (id),
    sku      VARCHAR(40) NOT NULL REFERENCES products (sku),
    quantity INTEGER     NOT NULL,
    price    BIGINT      NOT NULL, -- of one, in cents, as it was then
    PRIMARY KEY (order_id, sku)
);

-- +goose Down
DROP TABLE order_lines;
DROP TABLE orders;
